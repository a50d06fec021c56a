"""A signed request starts a checkout. The same signed text always leads to the same order."""

from __future__ import annotations

from dataclasses import dataclass, replace
from uuid import UUID

from cuota.core.checkout.start import Start
from cuota.core.merchant import Merchant, require_in_range, require_selling
from cuota.core.order.order import Order, edge
from cuota.core.refusal import Code, Refused
from cuota.db.checkout import sdk_checkouts
from cuota.flows.context import Context, new_token
from cuota.flows.order.create_order import OrderRequest, new_order, write_order

# The amount's name in a signed request.
_AMOUNT = "order.amount"


@dataclass(frozen=True, slots=True)
class Begun:
    """A checkout and its state. `payer` is the stored JSON of the consumer who agreed to pay, if there is one.

    `left`: the consumer canceled the checkout before it timed out.
    """

    order: Order
    token: UUID
    start: Start
    payer: str | None = None
    warnings: tuple[dict[str, str], ...] = ()
    left: bool = False


async def start_checkout(
    context: Context, merchant: Merchant, request: OrderRequest, start: Start, *, auto_capture: bool
) -> Begun:
    """Create the order, or find the order that this signed text created before.

    Raises Refused(amount_out_of_range); the merchant's webhook then gets `order.rejected` once. Also raises Refused if the merchant may
    not make new orders.
    """
    if (earlier := await find_started(context, merchant, start.body_hash)) is not None:
        return await _told_here(context, earlier, start.origin)
    require_selling(merchant, sandbox=context.settings.sandbox)
    order = new_order(context, merchant, request, auto_capture=auto_capture)
    refused = _out_of_range(merchant, request.amount)
    if refused is not None:
        order = replace(order, status=edge(order.status, "reject").after)
    token = new_token()
    if not await write_order(context, order, token, request, start):
        # An identical request created the order a moment earlier.
        earlier = await find_started(context, merchant, start.body_hash)
        assert earlier is not None
        return await _told_here(context, earlier, start.origin)
    if refused is not None:
        raise refused
    return Begun(order, token, start, warnings=tuple(request.warnings))


async def _told_here(context: Context, begun: Begun, origin: str | None) -> Begun:
    """Send the result to the latest origin that requested the checkout.

    A shop may serve its page from two origins, with and without www.
    """
    if origin is None or origin == begun.start.origin:
        return begun
    order = begun.order
    await sdk_checkouts.move(context.pool, order.merchant_id, order.order_id, origin)
    return replace(begun, start=replace(begun.start, origin=origin))


async def find_started(context: Context, merchant: Merchant, body_hash: bytes | None) -> Begun | None:
    """Return the checkout that this signed text created before, if any. Raises Refused if its amount was out of range."""
    earlier = None
    if body_hash is not None:
        earlier = await sdk_checkouts.read_earlier(context.pool, merchant.merchant_id, body_hash)
    if earlier is None:
        return None
    if earlier.rejected:
        require_in_range(merchant, earlier.order.amount, _AMOUNT)
        # The merchant's range may have changed since, but a refused text is still refused.
        message = "This signed text was refused before, because its amount was outside your range. Sign the order again."
        raise Refused(Code.AMOUNT_OUT_OF_RANGE, message)
    return Begun(earlier.order, earlier.token, earlier.start, earlier.payer, left=earlier.left)


def _out_of_range(merchant: Merchant, amount: int) -> Refused | None:
    try:
        require_in_range(merchant, amount, _AMOUNT)
    except Refused as refused:
        return refused
    return None
