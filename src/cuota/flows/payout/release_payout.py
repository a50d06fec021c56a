"""Releases a payout that is held, because its merchant was not approved or the operator held it. The bank is then asked at once."""

from __future__ import annotations

from uuid import UUID

from cuota.core.payout.arrival import day_at_bank
from cuota.core.payout.calendar import next_business_day
from cuota.db.payout import holds
from cuota.db.payout.holds import Release
from cuota.flows.context import Context
from cuota.flows.merchant.manage_merchants import BadMerchant

_REFUSED = {
    Release.UNAPPROVED: "Nothing was released: the merchant is not approved. Accept every item of its onboarding first.",
    Release.NOT_HELD: "Nothing was released: this payout is not held any more. Perhaps an earlier click released it.",
}


async def release_payout(context: Context, merchant_id: UUID, payout_id: UUID) -> None:
    """Release one payout, once. Raises BadMerchant."""
    now = context.now()
    arrival = next_business_day(day_at_bank(now))
    done = await holds.release(context.pool, merchant_id, payout_id, now, arrival)
    if done is not Release.RELEASED:
        raise BadMerchant(_REFUSED[done])
