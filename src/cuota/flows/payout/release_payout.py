"""Releases a payout that is held, because its merchant or its account was not approved, or the operator held it.

The bank is then asked at once. If the merchant has another bank account by now, the amount goes back to the merchant's balance.
"""

from __future__ import annotations

from uuid import UUID

from cuota.core.payout.arrival import day_at_bank
from cuota.core.payout.calendar import next_business_day
from cuota.db.payout import holds
from cuota.db.payout.holds import Release
from cuota.flows.context import Context
from cuota.flows.merchant.manage_merchants import BadMerchant

NOT_HELD = "Nothing was released: this payout is not held any more. Perhaps an earlier click released it."
_REFUSED = {
    Release.UNAPPROVED: "Nothing was released: the merchant is not approved. Accept every item of its onboarding first.",
    Release.REFUSED: "Nothing was released: the bank account of this payout was not accepted. Wait until another account that you have accepted is in force.",
    Release.NOT_HELD: NOT_HELD,
}


async def release_payout(context: Context, merchant_id: UUID, payout_id: UUID) -> Release:
    """Release one payout, once. Return RELEASED or GIVEN_BACK. Raises BadMerchant."""
    now = context.now()
    arrival = next_business_day(day_at_bank(now))
    done = await holds.release(context.pool, merchant_id, payout_id, now, arrival)
    if done in _REFUSED:
        raise BadMerchant(_REFUSED[done])
    return done
