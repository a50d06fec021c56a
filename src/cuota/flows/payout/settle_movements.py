"""Turns each movement of a merchant's money into exactly one settlement line."""

from __future__ import annotations

import asyncio
import time
from functools import partial
from uuid import UUID

import asyncpg

from cuota.core.payout.cutoff import next_cutoff
from cuota.db.payout import lines
from cuota.flows.context import Context

EVENTS_AT_ONCE = 1000
# Citus plans each statement inside the function again each time, so an event takes milliseconds there.
AT_ONCE_ON_CLUSTER = 100
# A merchant with a long backlog does not block the others.
MOST_BATCHES = 50


async def settle_movements(context: Context) -> int:
    """Write the settlement lines of all merchants' new movements. Return how many events were read."""
    behind = await lines.merchants_behind(context.pool)
    return await context.each_apart("settlement", behind, partial(settle_merchant, context))


async def settle_merchant(context: Context, merchant_id: UUID, most: int | None = None) -> int:
    """Write the lines of one merchant's next events, in batches of `most`. Return how many events were read."""
    most = most or (AT_ONCE_ON_CLUSTER if context.pool.sharded else EVENTS_AT_ONCE)
    read = 0
    for _ in range(MOST_BATCHES):
        coming = await lines.next_movements(context.pool, merchant_id, context.now(), most)
        if coming.close_at is None and coming.moved_at is not None:
            # This is the first movement after a pause. If movements are older than the merchant's first line, they form
            # one batch, and not one batch for each past day.
            cutoff = next_cutoff(coming.terms, max(coming.closed_until, coming.moved_at))
            await lines.open_batch(context.pool, merchant_id, coming.position, cutoff)
        began = time.monotonic()
        try:
            settled = await lines.settle(context.pool, merchant_id, most)
        except asyncpg.QueryCanceledError:
            # The batch reached the statement timeout and wrote nothing. The same batch would not be faster the next time.
            if most == 1:
                raise
            most = max(1, most // 4)
            continue
        read += settled
        if not settled:
            break
        if settled == most:
            # During a long backlog, half of the time is left for requests.
            await asyncio.sleep(time.monotonic() - began)
    return read
