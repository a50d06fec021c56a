"""How long webhooks wait for an answer and for their next try: while the service runs, and while its clock is moved."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta

from cuota.core.webhook.delivery import MOST_AT_ONCE, Attempt, next_at_once, next_try, next_try_together
from cuota.db.webhook.deliveries import Lane
from cuota.rails.http import ACKNOWLEDGE_SECONDS

# While the clock is moved: what a receiver gets that has timed out, and what it gets after it has done so this often
# in a row. An answer gives it the first again.
HUNG_SECONDS = 1.0
HUNG_IN_A_ROW = 3
HASTY_SECONDS = 0.1


class Pace:
    """The service's own: each attempt has the time that the docs promise, and later tries are spread by chance."""

    def seconds(self, lane: Lane) -> float:
        """How long this receiver may take to answer an attempt."""
        del lane
        return ACKNOWLEDGE_SECONDS

    def at_once(self, at_once: int, attempt: Attempt) -> int:
        """How many attempts a receiver may have under way after this one."""
        return next_at_once(at_once, attempt)

    def wait(self, tries: int, attempt: Attempt, now: datetime) -> timedelta | None:
        """How long the next try waits after `tries` failed ones; None: it is parked."""
        del now
        return next_try(tries, attempt, random.random())  # noqa: S311 - jitter, no secret

    def learn(self, lane: Lane, attempt: Attempt) -> None:
        """What an attempt came to."""


class HurriedPace(Pace):
    """While the clock is moved, everybody waits for the slowest receiver: one that hangs costs seconds, not minutes.

    It counts what was attempted and what was acknowledged. `hanging` are receivers that are known to hang already.
    """

    def __init__(self, hanging: Iterable[Lane] = (), learned: Callable[[], None] = lambda: None) -> None:
        """`learned` is called after each attempt."""
        self.attempts = Counter[str]()
        self.timed_out = Counter[Lane]()
        self._in_a_row = Counter(hanging)
        self._learned = learned

    def seconds(self, lane: Lane) -> float:
        """The full time until it has timed out once, then one second, and a tenth where it keeps hanging."""
        hung = self._in_a_row[lane]
        if not hung and not self.timed_out[lane]:
            return ACKNOWLEDGE_SECONDS
        return HUNG_SECONDS if hung < HUNG_IN_A_ROW else HASTY_SECONDS

    def at_once(self, at_once: int, attempt: Attempt) -> int:
        """One that hangs gets many at once: nobody else waits for a place, everybody waits for the end."""
        return MOST_AT_ONCE if attempt.timed_out else super().at_once(at_once, attempt)

    def wait(self, tries: int, attempt: Attempt, now: datetime) -> timedelta | None:
        """Within the same tenth either way, on instants that many tries share."""
        return next_try_together(tries, attempt, now)

    def learn(self, lane: Lane, attempt: Attempt) -> None:
        """Count it."""
        self.attempts["attempts"] += 1
        self.attempts["acknowledged"] += attempt.acknowledged
        self.attempts["timedOut"] += attempt.timed_out
        if attempt.timed_out:
            self.timed_out[lane] += 1
            self._in_a_row[lane] += 1
        elif attempt.status is not None:
            self._in_a_row.pop(lane, None)
        self._learned()
