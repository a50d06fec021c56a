"""Closes each merchant's batch at its cutoff: one payout, or nothing while there is nothing to pay.

A service that was stopped closes each cutoff that it missed, once and in order.
"""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from cuota.core.payout.calendar import next_business_day
from cuota.core.payout.cutoff import BANK_ZONE, next_cutoff, pays_at
from cuota.db.payout import batches
from cuota.db.payout.batches import Closing, ClosingRequest
from cuota.flows.context import Context
from cuota.flows.payout.settle_movements import settle_merchant

# At most this many cutoffs of one merchant are closed in a row, before the other merchants have their turn.
MOST_CUTOFFS = 40


async def close_batches(context: Context) -> int:
    """Close every batch whose cutoff has passed. Return how many payouts were created."""

    async def close(merchant_id: UUID) -> int:
        return (await close_merchant(context, merchant_id)).count(Closing.PAID)

    return await context.each_apart(
        "closing", await batches.merchants_due(context.pool, context.now()), close
    )


async def close_merchant(context: Context, merchant_id: UUID) -> list[Closing]:
    """Close one merchant's missed cutoffs, in order. Return the result of each closing."""
    done: list[Closing] = []
    while len(done) < MOST_CUTOFFS and (closing := await _close_next(context, merchant_id)) is not None:
        if closing in {Closing.BEHIND, Closing.BUSY}:
            break
        done.append(closing)
    return done


async def _close_next(context: Context, merchant_id: UUID) -> Closing | None:
    # All movements before the cutoff go into the batch. After a closing, this also opens the next batch.
    await settle_merchant(context, merchant_id)
    now = context.now()
    found = await batches.due(context.pool, merchant_id, now)
    if found is None:
        return None
    terms = found.terms
    asked = ClosingRequest(
        merchant_id,
        found,
        next_cutoff=next_cutoff(terms, found.cutoff),
        pays=pays_at(terms, found.cutoff),
        now=now,
        release_at=found.cutoff + timedelta(days=terms.reserve_days),
        payout_id=context.new_id(),
        reserve_id=context.new_id(),
        arrival_date=next_business_day(now.astimezone(BANK_ZONE).date()),
    )
    return await batches.close(context.pool, asked)
