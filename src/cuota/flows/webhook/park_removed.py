"""Parks the deliveries of removed endpoints whose queue was too long to be parked with the removal."""

from __future__ import annotations

from collections import defaultdict
from uuid import UUID

from cuota.db.webhook import replays
from cuota.db.webhook.lanes import lanes_removed
from cuota.flows.context import Context


async def park_removed(context: Context) -> int:
    """Park some deliveries of each removed endpoint. Return how many."""
    removed: dict[UUID, set[UUID]] = defaultdict(set)
    for lane in await lanes_removed(context.pool):
        removed[lane.merchant_id].add(lane.receiver)

    async def park(merchant_id: UUID) -> int:
        parked = 0
        for receiver in removed[merchant_id]:
            parked += await replays.park(context.pool, merchant_id, receiver, context.now())
        return parked

    return await context.each_apart("parking", list(removed), park)
