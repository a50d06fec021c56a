"""Limits the deliveries in progress for each receiver, so that slow and dead receivers do not delay others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from cuota.core.webhook.delivery import FIRST_AT_ONCE, Attempt, next_at_once
from cuota.db.webhook.lanes import Lane

MOST_UNDER_WAY = 400
# The shared limit for queues that have not answered promptly yet. The rest is reserved for queues that have.
MOST_DOUBTFUL = 200
REMEMBERED = 10_000
# A merchant gets half of what the others leave, so that whatever its receivers do, the next merchant gets a part.
HALF = 2


def _share(most: int, part: int, under_way: Mapping[Lane, int], lanes: list[Lane]) -> int:
    """Return how many deliveries the merchant of these queues may start of a shared limit: this part of what the others leave."""
    merchants = {lane.merchant_id for lane in lanes}
    mine = sum(n for lane, n in under_way.items() if lane.merchant_id in merchants)
    left = most - (sum(under_way.values()) - mine)
    return min(max(left // part, 1), left) - mine


class ReceiverLimits:
    """Counts the deliveries in progress for each queue, and adjusts each queue's limit by the answers."""

    def __init__(self, next_at_once: Callable[[int, Attempt], int] = next_at_once, part: int = HALF) -> None:
        """With `part` 1, a merchant may use all that the others leave."""
        self._next_at_once = next_at_once
        self._part = part
        self._under_way: Counter[Lane] = Counter()
        self._at_once: dict[Lane, int] = {}

    def room(self, lanes: list[Lane]) -> dict[Lane, int]:
        """Return how many deliveries each queue of one merchant may start now, without the queues that may start none."""
        total = _share(MOST_UNDER_WAY, self._part, self._under_way, lanes)
        unanswered = {lane: n for lane, n in self._under_way.items() if not self._prompt(lane)}
        doubtful = _share(MOST_DOUBTFUL, self._part, unanswered, lanes)
        # Nobody knows how many deliveries of a queue are due. If a queue with one delivery could take the places of many, the other
        # queues would wait for the next search. So the queues that are left, of each of the two kinds, share the places that are left.
        waiting = Counter(self._prompt(lane) for lane in lanes)
        given: dict[Lane, int] = {}
        for lane in lanes:
            prompt = self._prompt(lane)
            left = total if prompt else min(total, doubtful)
            even = min(max(left // waiting[prompt], 1), left)
            waiting[prompt] -= 1
            if (room := min(self._limit(lane) - self._under_way[lane], even)) > 0:
                given[lane] = room
                total -= room
                doubtful -= 0 if prompt else room
        return given

    def begin(self, lane: Lane) -> None:
        """Count one more delivery in progress."""
        self._under_way[lane] += 1

    def learn(self, lane: Lane, attempt: Attempt) -> None:
        """Adjust the queue's limit after an answer."""
        if len(self._at_once) >= REMEMBERED:
            self._at_once.clear()
        self._at_once[lane] = self._next_at_once(self._limit(lane), attempt)

    def end(self, lane: Lane) -> None:
        """Count one fewer delivery in progress."""
        self._under_way[lane] -= 1
        if not self._under_way[lane]:
            del self._under_way[lane]

    def _limit(self, lane: Lane) -> int:
        return self._at_once.get(lane, FIRST_AT_ONCE)

    def _prompt(self, lane: Lane) -> bool:
        return self._limit(lane) > FIRST_AT_ONCE
