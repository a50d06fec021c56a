"""Webhook delivery: when to try again, and what an attempt means."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

# Seconds after the try before it; the first one is at once. Ten tries, then the delivery is parked.
TIMETABLE = (0, 10, 60, 300, 1800, 7200, 21600, 43200, 86400, 86400)
JITTER = 0.1
LONGEST_RETRY_AFTER = timedelta(days=1)
# A later event of the same order waits until the one before it is delivered or has failed this often.
HOLDS_BACK_FOR = 3
# How many tries one receiver has under way at once: few until it has shown that it answers, then more, none to spare.
FIRST_AT_ONCE = 4
MOST_AT_ONCE = 16
PROMPT_MS = 1000
# The error of an attempt whose receiver did not answer within its time.
TIMED_OUT = "no answer in time"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Attempt:
    """What one try came to. `status` None where no answer came; `retry_after` as the receiver asked, in seconds."""

    status: int | None
    ms: int
    error: str | None = None
    answer: bytes = b""
    retry_after: int | None = None

    @property
    def acknowledged(self) -> bool:
        """A 2xx in time, and nothing else."""
        return self.error is None and self.status is not None and 200 <= self.status < 300

    @property
    def timed_out(self) -> bool:
        """The receiver hung: no status within the time that it had."""
        return self.error == TIMED_OUT


def next_at_once(at_once: int, attempt: Attempt) -> int:
    """How many tries a receiver may have under way after this one: a prompt one doubles, one that hangs has one."""
    if attempt.status is None:
        return 1
    return min(2 * at_once, MOST_AT_ONCE) if attempt.ms <= PROMPT_MS else max(at_once // 2, 1)


def next_try(tries: int, attempt: Attempt, chance: float) -> timedelta | None:
    """How long to wait after `tries` failed tries, the last of which was `attempt`; None: park it.

    `chance` from 0 to 1 spreads tries by a tenth either way, so that a receiver that comes back is not met by all at once.
    """
    if tries >= len(TIMETABLE):
        return None
    planned = timedelta(seconds=TIMETABLE[tries]) * (1 + JITTER * (2 * chance - 1))
    return _not_before(planned, attempt)


def next_try_together(tries: int, attempt: Attempt, now: datetime) -> timedelta | None:
    """As `next_try`, within the same tenth either way, but many failed tries come due at one instant instead of spread.

    For a clock that is moved: it stands still at each instant at which something falls due, so fewer instants are
    faster. Instants are multiples of a fifth of the planned wait, of which the allowed range always holds one.
    """
    if tries >= len(TIMETABLE):
        return None
    planned, at = timedelta(seconds=TIMETABLE[tries]), now - _EPOCH
    step = planned / 5
    together = -((at + planned * 9 / 10) // -step) * step
    return _not_before(together - at, attempt)


def _not_before(planned: timedelta, attempt: Attempt) -> timedelta:
    if attempt.retry_after is None:
        return planned
    return max(planned, min(timedelta(seconds=attempt.retry_after), LONGEST_RETRY_AFTER))
