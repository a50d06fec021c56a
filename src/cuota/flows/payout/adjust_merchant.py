"""Posts an operator's manual correction, with a reason, which raises or reduces a merchant's next payout."""

from __future__ import annotations

from uuid import UUID

from cuota.core.merchant import Merchant
from cuota.core.payout.posting import adjustment
from cuota.db.payout import adjustments
from cuota.flows.context import Context
from cuota.flows.merchant.manage_merchants import LARGEST, BadMerchant, find_merchant

MOST_REASON = 100


async def adjust_merchant(
    context: Context, name: str, net: int, reason: str, adjustment_id: UUID | None = None
) -> tuple[Merchant, UUID]:
    """Post an adjustment of `net` cents. Return the merchant and the adjustment's id. Raises BadMerchant.

    With `adjustment_id`, a second call with the same id is refused, for example after a second click.
    """
    if not net:
        raise BadMerchant("Nothing was changed: --amount must not be zero.")
    if abs(net) > LARGEST:
        raise BadMerchant("Nothing was changed: --amount is too large.")
    if not 1 <= len(reason.strip()) <= MOST_REASON or not reason.isprintable():
        raise BadMerchant(
            f"Nothing was changed: --reason must have 1 to {MOST_REASON} printable characters. The merchant reads it."
        )
    merchant = await find_merchant(context, name)
    adjustment_id = adjustment_id or context.new_id()
    posted = await adjustments.post(
        context.pool, merchant.merchant_id, adjustment_id, adjustment(net), net, merchant.currency, reason.strip(),
        context.now(),
    )  # fmt: skip
    if not posted:
        raise BadMerchant(
            "This correction was booked before, and was not booked again. Open the page again for another one."
        )
    return merchant, adjustment_id
