"""Releases claims that no process is working on, so that another worker can claim the deliveries within seconds."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Collection, Hashable
from typing import TypeVar
from uuid import UUID

from cuota.db import workers
from cuota.db.webhook import claims
from cuota.db.webhook.claims import Claim
from cuota.db.workers import Worker
from cuota.flows.context import Context

# Within this time, a worker that only lost its database session takes its lock again, and gets the answers about its
# latest claims.
DEAD_SECONDS = 2.0
# A worker checks its lock several times before other workers treat it as dead.
assert 3 * workers.LOOK_SECONDS < DEAD_SECONDS
KeyT = TypeVar("KeyT", bound=Hashable)


class Heir:
    """Releases two kinds of claims: those of dead workers, and those that this process holds without knowing it.

    The second kind arises when the database has claimed deliveries but the session was lost before the answer arrived.
    If a claim is released although a worker is still sending, nothing breaks: the receiver may get the same event
    twice, and only the result of the latest attempt is recorded. There is one Heir in each process.
    """

    def __init__(
        self, worker: Worker | None = None, under_way: Callable[[], Collection[Claim]] = tuple
    ) -> None:
        self._worker = worker
        self._under_way = under_way
        self._unheld: dict[int, float] = {}
        self._unknown: dict[Claim, float] = {}

    async def free_claims(self, context: Context) -> int:
        """Release such claims and return how many. A claim is released only after it was abandoned for DEAD_SECONDS."""
        return await self._of_the_dead(context) + await self._unknown_here(context)

    async def _of_the_dead(self, context: Context) -> int:
        theirs: dict[int, list[UUID]] = defaultdict(list)
        for merchant_id, name in await claims.claimers(context.pool):
            theirs[name].append(merchant_id)
        self._unheld = _since(
            self._unheld, await workers.unheld(context.pool, list(theirs)) if theirs else []
        )
        dead: dict[UUID, list[int]] = defaultdict(list)
        for name in _for_long(self._unheld):
            for merchant_id in theirs[name]:
                dead[merchant_id].append(name)
        now = context.now()
        return sum([await claims.free(context.pool, whose, names, now) for whose, names in dead.items()])

    async def _unknown_here(self, context: Context) -> int:
        name = self._worker.name if self._worker else None
        if name is None:
            return 0
        claimed = await claims.of_worker(context.pool, name)
        known = set(self._under_way())
        self._unknown = _since(self._unknown, [claim for claim in claimed if claim not in known])
        lost: dict[UUID, list[Claim]] = defaultdict(list)
        for claim in _for_long(self._unknown):
            lost[claim.merchant_id].append(claim)
        now = context.now()
        return sum(
            [await claims.let_go(context.pool, whose, name, given, now) for whose, given in lost.items()]
        )


def _since(before: dict[KeyT, float], found: Collection[KeyT]) -> dict[KeyT, float]:
    now = time.monotonic()
    return {key: before.get(key, now) for key in found}


def _for_long(since: dict[KeyT, float]) -> list[KeyT]:
    now = time.monotonic()
    return [key for key, first in since.items() if now - first >= DEAD_SECONDS]
