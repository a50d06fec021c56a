"""Webhook delivery: the meaning of an attempt's result, and when to retry."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

# The delay of each attempt after the previous one, in seconds. The first attempt is immediate. After ten attempts, the
# delivery is parked.
TIMETABLE = (0, 10, 60, 300, 1800, 7200, 21600, 43200, 86400, 86400)
JITTER = 0.1
LONGEST_RETRY_AFTER = timedelta(days=1)
# A later event of the same order waits until the previous event is delivered, or has failed this many times.
HOLDS_BACK_FOR = 3
# The number of concurrent attempts for one receiver: few until the receiver has answered, then more, up to a maximum.
FIRST_AT_ONCE = 4
MOST_AT_ONCE = 16
PROMPT_MS = 1000
# The error of an attempt that timed out.
TIMED_OUT = "no answer in time"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Attempt:
    """The result of one attempt.

    `status` is None without a response. `retry_after` is the receiver's Retry-After, in seconds.
    """

    status: int | None
    ms: int
    error: str | None = None
    answer: bytes = b""
    retry_after: int | None = None

    @property
    def acknowledged(self) -> bool:
        """True only for a 2xx response in time."""
        return self.error is None and self.status is not None and 200 <= self.status < 300

    @property
    def timed_out(self) -> bool:
        """True if the receiver did not send a status before the timeout."""
        return self.error == TIMED_OUT


def next_at_once(at_once: int, attempt: Attempt) -> int:
    """Return how many deliveries may run at the same time after this attempt.

    The number doubles after a fast answer, is halved after a slow answer, and is one after no answer.
    """
    if attempt.status is None:
        return 1
    return min(2 * at_once, MOST_AT_ONCE) if attempt.ms <= PROMPT_MS else max(at_once // 2, 1)


def next_try(tries: int, attempt: Attempt, chance: float) -> timedelta | None:
    """Return the delay after `tries` failed attempts, the last of which was `attempt`, or None to park the delivery.

    `chance` from 0 to 1 varies the delay by up to a tenth in either direction (jitter), so that a receiver that works again does
    not get all retries at once.
    """
    if tries >= len(TIMETABLE):
        return None
    planned = timedelta(seconds=TIMETABLE[tries]) * (1 + JITTER * (2 * chance - 1))
    return _not_before(planned, attempt)


def next_try_together(tries: int, attempt: Attempt, now: datetime) -> timedelta | None:
    """Return a delay like `next_try`, but rounded, so that many failed deliveries are due at the same instant.

    This is for a clock that is being moved. The clock stops at each instant at which work is due, so fewer instants are faster. The
    instants are multiples of a fifth of the planned delay. The range of a tenth in either direction always contains one.
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
