"""Parks the deliveries of removed endpoints whose queue was too long to be parked with the removal."""

from __future__ import annotations

from cuota.db.webhook import deliveries, replays
from cuota.flows.apart import apart
from cuota.flows.context import Context


async def park_removed(context: Context) -> int:
    """Park some deliveries of each removed endpoint. Return how many."""
    removed = {(lane.merchant_id, lane.receiver) for lane in await deliveries.lanes_removed(context.pool)}
    parked = 0
    for merchant_id, receiver in removed:
        with apart("parking", merchant_id):
            parked += await replays.park(context.pool, merchant_id, receiver, context.now())
    return parked
