"""What nobody has under way any more is due again: for whoever claims it next, seconds later and not after its lease."""

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

# A worker that has only lost its session has its lock again by then, and what it has just claimed it knows of.
DEAD_SECONDS = 2.0
KeyT = TypeVar("KeyT", bound=Hashable)


class Heir:
    """One a process: frees what the dead had claimed, and what was claimed for this process without its knowing.

    The latter happens where the database said so on a session that was lost. Should somebody be at it after all, nothing
    breaks: the receiver may be sent again what it was just sent, and the number of the try decides whose answer counts.
    """

    def __init__(
        self, worker: Worker | None = None, under_way: Callable[[], Collection[Claim]] = tuple
    ) -> None:
        self._worker = worker
        self._under_way = under_way
        self._unheld: dict[int, float] = {}
        self._unknown: dict[Claim, float] = {}

    async def free_claims(self, context: Context) -> int:
        """Free them; answers how many. What is so for the first time now is left until it was so for a while."""
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
