"""Suspends a merchant, which then makes no new orders, and resumes it.

Captures, voids, refunds, plans, webhooks and disputes continue. The merchant's payouts are held if the operator asks for that.
"""

from __future__ import annotations

from dataclasses import dataclass

from cuota.core.merchant import Merchant
from cuota.db.merchant import merchants
from cuota.db.payout import holds
from cuota.db.payout.holds import HoldReason
from cuota.flows.context import Context
from cuota.flows.merchant.manage_merchants import BadMerchant, find_merchant


@dataclass(frozen=True, slots=True)
class Suspended:
    """The merchant, and the number of held payouts that were not sent to the bank yet."""

    merchant: Merchant
    stopped: int = 0


async def require_change(context: Context, merchant: Merchant, *, suspend: bool, hold: bool) -> None:
    """Raise BadMerchant if the merchant is suspended (with `hold`: and its payouts are held) or resumed already."""
    if not suspend:
        if not merchant.suspended:
            raise BadMerchant(f"Nothing was changed: {merchant.name} is not suspended.")
        return
    held = (await holds.read(context.pool, merchant.merchant_id)).held_since is not None
    if merchant.suspended and (held or not hold):
        raise BadMerchant(f"Nothing was changed: {merchant.name} is suspended already.")


async def suspend_merchant(
    context: Context, name_or_id: str, *, hold: bool, suspended: bool = False
) -> Suspended:
    """Stop new orders, in every process within 5 seconds. With `hold`, payouts wait for a release. Raises BadMerchant.

    The payouts of a merchant that is already suspended can still be held. `suspended`: the person saw a suspended merchant, so a
    merchant that was resumed since then is not suspended again.
    """
    merchant = await find_merchant(context, name_or_id)
    merchant_id, now, stopped = merchant.merchant_id, context.now(), 0
    await require_change(context, merchant, suspend=True, hold=hold)
    if suspended and not merchant.suspended:
        raise BadMerchant(f"Nothing was changed: {merchant.name} was resumed meanwhile.")
    async with context.pool.session() as session, session.transaction():
        if hold:
            stopped = await holds.hold(session, merchant_id, HoldReason.OPERATOR, now, on=True)
        await merchants.suspend(session, merchant_id, now)
    return Suspended(merchant, stopped)


async def resume_merchant(context: Context, name_or_id: str) -> Merchant:
    """Allow new orders again, and end the hold of payouts. Payouts that are already held are released manually. Raises BadMerchant."""
    merchant = await find_merchant(context, name_or_id)
    await require_change(context, merchant, suspend=False, hold=False)
    async with context.pool.session() as session, session.transaction():
        # Even if no hold is visible: a concurrent suspension may have written a hold and not committed it yet.
        await holds.hold(session, merchant.merchant_id, HoldReason.OPERATOR, context.now(), on=False)
        await merchants.suspend(session, merchant.merchant_id, None)
    return merchant
