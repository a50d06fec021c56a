"""Deletes reservations that their submission did not delete: it crashed, or the result of its save is unknown."""

from __future__ import annotations

import logging

from cuota.core.refusal import Refused
from cuota.db.order import orders
from cuota.db.pool import BUSY, GONE
from cuota.db.risk import reservations
from cuota.flows.context import Context

BATCH = 100
log = logging.getLogger("cuota.risk")


async def settle_reservations(context: Context) -> int:
    """Settle the reservations that have expired. Return how many were deleted.

    The job fences the order first: a save that is still in progress must not be applied after the reservation is deleted. A
    saved order is charging or final, and in the consumer's history.
    """
    done = 0
    for each in await reservations.expired(context.pool, BATCH):
        try:
            await orders.fence(context.pool, each.merchant_id, each.order_id)
            done += await reservations.finish(context.pool, each.consumer_id, each.ticket, each.expires_at)
        except (Refused, *GONE, *BUSY) as problem:
            facts = {"orderId": str(each.order_id), "problem": type(problem).__name__}
            log.warning("reservation waits", extra={"facts": facts})
    return done
