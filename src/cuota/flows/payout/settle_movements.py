"""Turns what happened to a merchant's money into settlement lines, each exactly once."""

from __future__ import annotations

import asyncio
import logging
import time
from uuid import UUID

from cuota.core.payout.cutoff import next_cutoff
from cuota.core.refusal import Refused
from cuota.db.hosts import NodeLost
from cuota.db.payout import lines
from cuota.flows.context import Context

EVENTS_AT_ONCE = 1000
# A merchant with a long backlog lets the others have their turn in between.
MOST_BATCHES = 50
log = logging.getLogger("cuota.work")


async def settle_movements(context: Context) -> int:
    """Write the settlement lines of all merchants' new movements. Return how many events were read."""
    read = 0
    for merchant_id in await lines.merchants_behind(context.pool):
        try:
            read += await settle_merchant(context, merchant_id)
        except (Refused, NodeLost):
            log.warning("settlement waits", extra={"facts": {"merchantId": str(merchant_id)}})
        except Exception:
            # One merchant that fails must not stop the others.
            log.exception("settlement failed", extra={"facts": {"merchantId": str(merchant_id)}})
    return read


async def settle_merchant(context: Context, merchant_id: UUID, most: int = EVENTS_AT_ONCE) -> int:
    """Write the lines of one merchant's next events, in batches of `most`. Return how many events were read."""
    read = 0
    for _ in range(MOST_BATCHES):
        coming = await lines.next_movements(context.pool, merchant_id, context.now(), most)
        if coming.close_at is None and coming.moved_at is not None:
            # The first movement after a pause. A merchant whose movements are older than its first line has one batch of
            # them, and not one for each day of the past.
            cutoff = next_cutoff(coming.terms, max(coming.closed_until, coming.moved_at))
            await lines.open_batch(context.pool, merchant_id, coming.position, cutoff)
        began = time.monotonic()
        settled = await lines.settle(context.pool, merchant_id, most)
        read += settled
        if not settled:
            break
        if settled == most:
            # A long backlog leaves half of the time to the requests.
            await asyncio.sleep(time.monotonic() - began)
    return read
