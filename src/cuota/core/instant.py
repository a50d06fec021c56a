"""Instants as text: how one is written everywhere, and how a person names one to move the sandbox's clock to."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
FARTHEST = timedelta(days=5 * 365 + 2)
_SPAN = re.compile(r"([0-9]{1,7})([mhdw])", re.ASCII)
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_MOMENT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}.*", re.ASCII)
_FORMS = (
    "Give a span (90m, 36h, 14d, 6w), a date (2026-12-25), or a date with time and zone (2026-12-25T09:30Z)."
)


class BadInstant(ValueError):
    """Nothing that the clock can be moved to; the text says why, and what could be."""


@dataclass(frozen=True, slots=True)
class TargetInstant:
    """What was asked for: a span from the service's clock on, or an instant."""

    text: str
    span: timedelta | None = None
    instant: datetime | None = None

    def after(self, now: datetime) -> datetime:
        """The instant, where the service's clock is at `now`; raises BadInstant."""
        target = self.instant if self.span is None else now + self.span
        assert target is not None
        if target <= now:
            raise BadInstant(
                f"{self.text} is not ahead: the service's clock is at {timestamp(now)}. It moves forward only;"
                " to go back, `cuota time fork NAME` first and `cuota time rewind NAME` later."
            )
        if target - now > FARTHEST:
            raise BadInstant(f"{self.text} is more than 5 years ahead of {timestamp(now)}.")
        return target


def read_instant(text: str) -> TargetInstant:
    """Read what was typed; raises BadInstant."""
    span = _SPAN.fullmatch(text)
    if span is not None:
        # Cut to what a date can hold; that it is too much is said later, when the clock is known.
        return TargetInstant(text, span=min(timedelta(**{UNITS[span[2]]: int(span[1])}), 2 * FARTHEST))
    try:
        if _DAY.fullmatch(text):
            return TargetInstant(text, instant=datetime.combine(date.fromisoformat(text), time(0), UTC))
        moment = datetime.fromisoformat(text) if _MOMENT.fullmatch(text) else None
        instant = moment.astimezone(UTC) if moment else None
    except (ValueError, OverflowError) as problem:
        raise BadInstant(f"{text} is no such date: {problem}.") from None
    if moment is not None and moment.tzinfo is None:
        raise BadInstant(f"{text} has no zone. Add Z for UTC, or an offset such as -08:00.")
    if instant is not None:
        return TargetInstant(text, instant=instant)
    raise BadInstant(f"{text} is no instant. {_FORMS}")


def timestamp(at: datetime) -> str:
    """ISO 8601 in UTC, to the millisecond: `2026-11-21T09:30:00.123Z`."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
