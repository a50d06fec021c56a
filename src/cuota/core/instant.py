"""Instants as text: the format that is written everywhere, and the formats that commands accept."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

from cuota.core.expected_failure import ExpectedFailure

UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}
FARTHEST = timedelta(days=5 * 365 + 2)
_SPAN = re.compile(r"([0-9]{1,7})([mhdw])", re.ASCII)
_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)
_MOMENT = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ][0-9]{2}:[0-9]{2}.*", re.ASCII)
_FORMS = (
    "Give a span (90m, 36h, 14d, 6w), a date (2026-12-25), or a date with time and zone (2026-12-25T09:30Z)."
)


class BadInstant(ExpectedFailure, ValueError):
    """The text is not an instant, or the clock cannot be moved to it. The message says why, and what is valid."""


@dataclass(frozen=True, slots=True)
class TargetInstant:
    """The parsed text: a time span, or an instant."""

    text: str
    span: timedelta | None = None
    instant: datetime | None = None

    def after(self, now: datetime) -> datetime:
        """Return the instant, given the time `now`. Raises BadInstant if the instant is not later than `now`, or too far ahead."""
        target = self.instant if self.span is None else now + self.span
        assert target is not None
        if target <= now:
            raise BadInstant(
                f"{self.text} is not later than the service's clock, which is at {timestamp(now)}. The clock moves only forward."
                " To be able to go back, run `cuota time fork NAME` first, and `cuota time rewind NAME` later."
            )
        if target - now > FARTHEST:
            raise BadInstant(f"{self.text} is more than 5 years ahead of {timestamp(now)}.")
        return target


def read_instant(text: str) -> TargetInstant:
    """Read a span, a date, or a date with time and zone. Raises BadInstant."""
    span = _SPAN.fullmatch(text)
    if span is not None:
        # Limited to a span that date arithmetic can handle. `after` refuses a span that is too long.
        return TargetInstant(text, span=min(timedelta(**{UNITS[span[2]]: int(span[1])}), 2 * FARTHEST))
    try:
        if _DAY.fullmatch(text):
            return TargetInstant(text, instant=datetime.combine(date.fromisoformat(text), time(0), UTC))
        moment = datetime.fromisoformat(text) if _MOMENT.fullmatch(text) else None
        instant = moment.astimezone(UTC) if moment else None
    except (ValueError, OverflowError) as problem:
        raise BadInstant(f"{text} is not a valid date: {problem}.") from None
    if moment is not None and moment.tzinfo is None:
        raise BadInstant(f"{text} has no time zone. Add Z for UTC, or an offset such as -08:00.")
    if instant is not None:
        return TargetInstant(text, instant=instant)
    raise BadInstant(f"{text} is not a valid time. {_FORMS}")


def read_day(text: str) -> date | None:
    """Return a date that is written as 2026-12-25, or None for every other text. Python would also accept 20261225 and 2026-W52-5."""
    try:
        return date.fromisoformat(text) if _DAY.fullmatch(text) else None
    except ValueError:
        return None


def timestamp(at: datetime) -> str:
    """Format an instant as ISO 8601 in UTC with milliseconds: `2026-11-21T09:30:00.123Z`."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
