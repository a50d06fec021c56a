"""The number of places that admission control gives out in one process.

The number is adjusted up to ten times a second, by the average time that merchants' calls take: slow calls lower it, and
refusals while calls are fast raise it.
"""

from __future__ import annotations

from cuota.web.server.metrics import REFUSED

# The lowest, first and highest number of places. The lowest is well above one: when the operating system pauses the
# process for a moment, all the requests of that moment arrive at once, and that is not an overload.
LEAST, START, MOST = 64, 192, 1_024
assert LEAST < START < MOST, "the number of places must be able to rise and fall"
# The average time of a call in seconds: up to QUICK is fast, above SLOW is slow. An average of up to SLOWER times the time
# without load is never slow: a distant database makes every call slow, and fewer places would not help.
QUICK, SLOW, SLOWER = 0.1, 0.4, 3.0
assert QUICK * 2 < SLOW, "a process with more places than START must count as slow earlier"
# Seconds over which calls are averaged, and how many calls are enough for an average.
WINDOW, ENOUGH = 0.1, 10
# The number of places is lowered only after this many slow windows in a row. A process start or a database checkpoint
# makes fewer windows slow, and is not an overload.
PATIENCE = 5


class AdmissionSlots:
    """The number of places of one process.

    `all` is the number of places. While at least `for_new` of them are taken, no new order is admitted.
    """

    def __init__(self) -> None:
        self.all = START
        self.for_new = START * 0.75
        self._new_share = 0.75
        self._ease = QUICK / SLOWER
        self._spent, self._finished, self._refused, self._full = 0.0, 0, 0, 0
        self._window_ends, self._slow_windows = 0.0, 0

    def refused(self, why: str, *, begun: bool = True) -> None:
        """Count a refused request. `why` is `full`, `share` or `creation`.

        `begun`: a merchant or its consumers sent the request, and it does not create an order.
        """
        REFUSED[why].inc()
        self._refused += 1
        # A refusal is a reason to admit fewer new orders only if `begun` is true.
        self._full += begun and why == "full"

    def done(self, seconds: float, now: float) -> None:
        """Record that a merchant's call took this many seconds. `now` is the time on admission's clock."""
        self._spent += seconds
        self._finished += 1
        if now >= self._window_ends:
            if self._finished >= ENOUGH:
                self._learn(self._spent / self._finished)
            self._spent, self._finished, self._refused = 0.0, 0, 0
            self._window_ends = now + WINDOW

    def moved_on(self) -> None:
        """Adjust the places for new orders after a window of time.

        If requests about existing orders were refused because all places were taken, fewer places are for new orders.
        """
        self._new_share = self._new_share * 0.7 if self._full else min(0.75, self._new_share + 0.05)
        self._full = 0
        self.for_new = self.all * self._new_share

    def _learn(self, mean: float) -> None:
        """Adjust the number of places: fewer if calls are slow, more if calls are fast and a request was refused.

        `mean` is the average time of the last window's calls, in seconds.
        """
        self._ease = min(mean, self._ease if self._refused else self._ease * 1.001)
        ease, least = self._ease * SLOWER, START if self.all > START else LEAST
        slow = mean > max(QUICK * 2 if self.all > START else SLOW, ease)
        self._slow_windows = self._slow_windows + 1 if slow else 0
        if self._slow_windows >= PATIENCE:
            self.all = max(least, int(self.all * 0.8))
        elif self._refused and mean <= max(QUICK, ease):
            self.all = min(MOST, int(self.all * 1.25))
