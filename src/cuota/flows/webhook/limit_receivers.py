"""How much each receiver may have under way, so that slow and dead ones delay nobody else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from cuota.core.webhook.delivery import FIRST_AT_ONCE, Attempt, next_at_once
from cuota.db.webhook.deliveries import Lane

MOST_UNDER_WAY = 400
# What those who have not shown that they answer promptly may have of it together: the rest is for those who have.
MOST_DOUBTFUL = 200
REMEMBERED = 10_000


class ReceiverLimits:
    """Counts what is under way for each queue, and learns from its answers how many it can take."""

    def __init__(self, next_at_once: Callable[[int, Attempt], int] = next_at_once) -> None:
        self._next_at_once = next_at_once
        self._under_way: Counter[Lane] = Counter()
        self._at_once: dict[Lane, int] = {}
        self.crowded = False

    def room(self, lanes: list[Lane]) -> dict[Lane, int]:
        """How many each may have now; those without room are left out, and `crowded` says that one of them answers."""
        total = MOST_UNDER_WAY - self._under_way.total()
        doubtful = MOST_DOUBTFUL - sum(n for lane, n in self._under_way.items() if not self._prompt(lane))
        given: dict[Lane, int] = {}
        for lane in lanes:
            room = min(self._limit(lane) - self._under_way[lane], total)
            if not self._prompt(lane):
                room = min(room, doubtful)
                doubtful -= max(room, 0)
            if room > 0:
                given[lane] = room
                total -= room
            elif self._limit(lane) > 1:
                self.crowded = True
        return given

    def begin(self, lane: Lane) -> None:
        """One more is under way."""
        self._under_way[lane] += 1

    def learn(self, lane: Lane, attempt: Attempt) -> None:
        """What its answer says about the next ones."""
        if len(self._at_once) >= REMEMBERED:
            self._at_once.clear()
        self._at_once[lane] = self._next_at_once(self._limit(lane), attempt)

    def end(self, lane: Lane) -> None:
        """One is no longer under way."""
        self._under_way[lane] -= 1
        if not self._under_way[lane]:
            del self._under_way[lane]

    def _limit(self, lane: Lane) -> int:
        return self._at_once.get(lane, FIRST_AT_ONCE)

    def _prompt(self, lane: Lane) -> bool:
        return self._limit(lane) > FIRST_AT_ONCE
