"""A checkout ends without payment: the consumer cancels it, or it times out."""

from __future__ import annotations

import contextlib
from uuid import UUID

from cuota.core.checkout.ending import Charging, abandon
from cuota.core.order.order import Final, Order
from cuota.core.order.outcome import Outcome
from cuota.core.risk.review import ReviewState
from cuota.db.order.orders import Found
from cuota.flows.context import Context
from cuota.flows.settle import settle


async def leave_checkout(context: Context, merchant_id: UUID, order_id: UUID) -> Order:
    """Abandon the order now. Raises Final, or Charging while a card is being charged."""

    def decide(found: Found) -> Outcome:
        return abandon(found.order, context.now(), left=True)

    return (await settle(context, merchant_id, order_id, decide)).order


async def lapse_order(context: Context, merchant_id: UUID, order_id: UUID) -> None:
    """Abandon the order if its time has ended. The worker calls this. The order may have ended in another way by then."""

    def decide(found: Found) -> Outcome | None:
        order, now = found.order, context.now()
        # A card that was declined after the worker looked leaves the consumer the rest of the order's time. An order that waits
        # for a person is never abandoned by the worker: it is declined first.
        waits = order.review is ReviewState.WAITING
        return None if waits or now < order.expires_at else abandon(order, now, left=False)

    with contextlib.suppress(Final, Charging):
        await settle(context, merchant_id, order_id, decide)
