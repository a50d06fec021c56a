"""A checkout ends without payment: the consumer cancels it, or it times out."""

from __future__ import annotations

from uuid import UUID

from cuota.core.checkout.ending import Charging, abandon
from cuota.core.order.order import Final, Order
from cuota.core.order.outcome import Outcome
from cuota.db.order import orders
from cuota.db.order.orders import Found, Session
from cuota.flows.context import Context
from cuota.flows.settle import settle


class _StillTime(Exception):  # noqa: N818 - a fact: the consumer may go on
    pass


async def leave_checkout(context: Context, merchant_id: UUID, order_id: UUID) -> Order:
    """Abandon the order now. Raises Final, or Charging while a card is being charged."""
    return (await _abandon(context, merchant_id, order_id, left=True)).order


async def lapse_order(context: Context, merchant_id: UUID, order_id: UUID) -> None:
    """Abandon an order whose time is over, as a background job. Does nothing if the order has changed meanwhile."""
    try:
        await _abandon(context, merchant_id, order_id, left=False)
    except (Final, Charging, _StillTime):
        return


async def _abandon(context: Context, merchant_id: UUID, order_id: UUID, *, left: bool) -> Outcome:
    async def read(session: Session) -> Found | None:
        return await orders.read_with_plan(session, merchant_id, order_id)

    def decide(found: Found) -> Outcome:
        # The order may no longer be due: after a declined card the consumer has the rest of the time.
        if not left and context.now() < found.order.expires_at:
            raise _StillTime
        return abandon(found.order, context.now(), left=left)

    return await settle(context, merchant_id, order_id, read, decide)
