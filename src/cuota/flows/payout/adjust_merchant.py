"""What an operator can do with a merchant's money by hand: add to the next payout, or take from it, with a reason."""

from __future__ import annotations

from uuid import UUID

from cuota.core.merchant import Merchant
from cuota.core.payout.posting import adjustment
from cuota.db.payout import adjustments
from cuota.flows.context import Context
from cuota.flows.merchant.manage_merchants import LARGEST, BadMerchant, find_merchant

MOST_REASON = 100


async def adjust_merchant(context: Context, name: str, net: int, reason: str) -> tuple[Merchant, UUID]:
    """Post an adjustment of `net` cents. Return the merchant and the adjustment's id. Raises BadMerchant."""
    if not net:
        raise BadMerchant("Nothing was changed: --amount must not be zero.")
    if abs(net) > LARGEST:
        raise BadMerchant("Nothing was changed: --amount is too large.")
    if not 1 <= len(reason.strip()) <= MOST_REASON or not reason.isprintable():
        raise BadMerchant(
            f"Nothing was changed: --reason must have 1 to {MOST_REASON} printable characters. The merchant reads it."
        )
    merchant = await find_merchant(context, name)
    adjustment_id = context.new_id()
    await adjustments.post(
        context.pool, merchant.merchant_id, adjustment_id, adjustment(net), net, merchant.currency, reason.strip(),
        context.now(),
    )  # fmt: skip
    return merchant, adjustment_id
