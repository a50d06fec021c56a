"""Makes a merchant that has every kind of settlement row: paid, open, reserved, released, adjusted."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from cuota.flows.payout.adjust_merchant import adjust_merchant
from support.db.settled import closed, cutoff_of, give_account, give_terms, settled
from support.own_service import Own


async def a_busy_merchant(own: Own) -> UUID:
    """Give the merchant two payouts, a released reserve, a held reserve, a carried batch, and open lines."""
    merchant = own.merchant.merchant_id
    await give_account(own, merchant)
    await give_terms(own, merchant, reserve=1000, reserve_days=1)
    order = await own.merchant.approved("500.00")
    await own.merchant.move(order, "capture", "100.00")
    await own.merchant.move(order, "refund", "20.00")
    await next_cutoff_closes(own, merchant)
    await own.merchant.move(order, "capture", "30.00")
    await next_cutoff_closes(own, merchant)
    # The refund is larger than the open amount, so this batch is carried.
    await own.merchant.move(order, "refund", "50.00")
    await next_cutoff_closes(own, merchant)
    await own.merchant.move(order, "capture", "7.00")
    await adjust_merchant(own.context, own.merchant.name, -150, "A correction")
    await settled(own.context, merchant)
    return merchant


async def next_cutoff_closes(own: Own, merchant_id: UUID) -> None:
    """Write the open lines, move the clock past the merchant's next cutoff, and close its batch."""
    await settled(own.context, merchant_id)
    cutoff = await cutoff_of(own, merchant_id)
    assert cutoff is not None
    own.service.clock.ahead += cutoff - own.service.clock.now() + timedelta(seconds=1)
    assert await closed(own.context, merchant_id) == 1
