"""Timeouts and retry delays of webhooks, both normally and while the sandbox's clock is moved."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta

from cuota.core.webhook.delivery import MOST_AT_ONCE, Attempt, next_at_once, next_try, next_try_together
from cuota.db.webhook.lanes import ALL_LANES, MOST_LANES, Lane
from cuota.flows.webhook.limit_receivers import HALF
from cuota.rails.http import ACKNOWLEDGE_SECONDS

# While the clock is moved: the timeout of a receiver that has timed out once, and its timeout after this many timeouts in
# a row. Any answer restores the first of the two.
HUNG_SECONDS = 1.0
HUNG_IN_A_ROW = 3
HASTY_SECONDS = 0.1
# Each order may name its own host. If all of a merchant's hosts hang, the long timeouts of each of them would add up to many minutes. So
# when this many receivers of a merchant hang, the next ones get one second until they answer, and those that have hung a tenth of a second.
MANY_SILENT = 20


class Pace:
    """The normal pace: each attempt has the timeout that the docs promise, and retry delays have random jitter."""

    # How many queues of a merchant one search reads.
    most_lanes = MOST_LANES
    # Which part of the free places a merchant may use.
    part = HALF

    def seconds(self, lane: Lane) -> float:
        """Return the timeout in seconds for an attempt at this receiver."""
        del lane
        return ACKNOWLEDGE_SECONDS

    def at_once(self, at_once: int, attempt: Attempt) -> int:
        """Return how many attempts a receiver may have in progress after this one."""
        return next_at_once(at_once, attempt)

    def wait(self, tries: int, attempt: Attempt, now: datetime) -> timedelta | None:
        """Return the delay before the next attempt after `tries` failed attempts, or None to park the delivery."""
        del now
        return next_try(tries, attempt, random.random())  # noqa: S311 - jitter, no secret

    def learn(self, lane: Lane, attempt: Attempt) -> None:
        """Update the pace with the result of an attempt."""


class HurriedPace(Pace):
    """The pace while the sandbox's clock is moved.

    Moving the clock waits for the slowest receiver, so a receiver that hangs gets a short timeout. This class also
    counts attempts and acknowledged attempts. `hanging` are receivers that are already known to hang.
    """

    # The clock moves on if a search finds nothing, so each search reads all queues.
    most_lanes = ALL_LANES
    # Nobody's webhooks are late: the clock stands still until those of all merchants are sent. With a part only, it would stand longer.
    part = 1

    def __init__(self, hanging: Iterable[Lane] = (), learned: Callable[[], None] = lambda: None) -> None:
        """`learned` is called after each attempt."""
        self.attempts = Counter[str]()
        self.timed_out = Counter[Lane]()
        self._in_a_row = Counter(hanging)
        # By merchant: how many of its receivers hang now.
        self._silent = Counter(lane.merchant_id for lane in self._in_a_row)
        self._answered: set[Lane] = set()
        self._learned = learned

    def seconds(self, lane: Lane) -> float:
        """Return the full timeout until the receiver times out once, then one second, then a tenth of a second.

        If many receivers of the same merchant hang, a receiver that has not answered yet begins with one second.
        """
        hung, many = self._in_a_row[lane], self._silent[lane.merchant_id] >= MANY_SILENT
        if hung >= (1 if many else HUNG_IN_A_ROW):
            return HASTY_SECONDS
        doubted = hung or self.timed_out[lane] or (many and lane not in self._answered)
        return HUNG_SECONDS if doubted else ACKNOWLEDGE_SECONDS

    def at_once(self, at_once: int, attempt: Attempt) -> int:
        """Give a receiver that hangs many attempts at once.

        Nothing else needs these places, and the move of the clock waits for all of the attempts.
        """
        return MOST_AT_ONCE if attempt.timed_out else super().at_once(at_once, attempt)

    def wait(self, tries: int, attempt: Attempt, now: datetime) -> timedelta | None:
        """Return the delay, rounded so that many retries share one instant."""
        return next_try_together(tries, attempt, now)

    def learn(self, lane: Lane, attempt: Attempt) -> None:
        """Count the attempt."""
        self.attempts["attempts"] += 1
        self.attempts["acknowledged"] += attempt.acknowledged
        self.attempts["timedOut"] += attempt.timed_out
        if attempt.timed_out:
            self.timed_out[lane] += 1
            self._silent[lane.merchant_id] += lane not in self._in_a_row
            self._in_a_row[lane] += 1
        elif attempt.status is not None:
            self._answered.add(lane)
            if self._in_a_row.pop(lane, 0):
                self._silent[lane.merchant_id] -= 1
        self._learned()
