"""How many places a process has: learned from how long merchants' calls take, ten times a second."""

from __future__ import annotations

from cuota.web.server.metrics import REFUSED

# A process that the system let wait for a moment finds all that came meanwhile at once: that alone is no overload.
LEAST, START, MOST = 64, 192, 1_024
# Seconds that calls take on the mean, and times what they take at ease: a database that is far away makes every call
# slow, and fewer at a time would not mend it.
QUICK, SLOW, SLOWER = 0.1, 0.4, 3.0
WINDOW, ENOUGH = 0.1, 10
# Windows in a row that must be too slow: a start, or a checkpoint of the database, is no overload.
PATIENCE = 5


class AdmissionSlots:
    """`all` of them, and up to how many new orders may come in. Whoever measures calls `done`."""

    def __init__(self) -> None:
        self.all = START
        self.for_new = START * 0.75
        self._new_share = 0.75
        self._ease = QUICK / SLOWER
        self._spent, self._finished, self._refused, self._full = 0.0, 0, 0, 0
        self._window_ends, self._slow_windows = 0.0, 0

    def refused(self, why: str, count: int = 1, *, begun: bool = True) -> None:
        """So many were refused: `full`, `share` or `creation`. `begun`: it was about what a merchant has begun."""
        REFUSED[why].inc(count)
        self._refused += count
        # Neither what strangers ask for nor a new order itself is a reason to let fewer be begun.
        self._full += count * (begun and why == "full")

    def done(self, seconds: float, now: float) -> None:
        """A merchant's call took so long."""
        self._spent += seconds
        self._finished += 1
        if now >= self._window_ends:
            if self._finished >= ENOUGH:
                self._learn(self._spent / self._finished)
            self._spent, self._finished, self._refused = 0.0, 0, 0
            self._window_ends = now + WINDOW

    def moved_on(self) -> None:
        """A tenth of a second has gone by, whoever was served: fewer are for new orders as long as others find none."""
        self._new_share = self._new_share * 0.7 if self._full else min(0.75, self._new_share + 0.05)
        self._full = 0
        self.for_new = self.all * self._new_share

    def _learn(self, mean: float) -> None:
        """Fewer where calls take too long, more where somebody was refused while they do not."""
        self._ease = min(mean, self._ease if self._refused else self._ease * 1.001)
        ease, least = self._ease * SLOWER, START if self.all > START else LEAST
        slow = mean > max(QUICK * 2 if self.all > START else SLOW, ease)
        self._slow_windows = self._slow_windows + 1 if slow else 0
        if self._slow_windows >= PATIENCE:
            self.all = max(least, int(self.all * 0.8))
        elif self._refused and mean <= max(QUICK, ease):
            self.all = min(MOST, int(self.all * 1.25))
