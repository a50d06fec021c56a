"""The end of an authorization: the merchant gets an event in advance, and the service voids the uncaptured amount."""

from __future__ import annotations

from uuid import UUID

from cuota.core.order.outcome import Outcome
from cuota.core.order.void import lapse, warn
from cuota.db.order.orders import Found
from cuota.flows.context import Context
from cuota.flows.settle import settle


async def expire_authorization(context: Context, merchant_id: UUID, order_id: UUID) -> None:
    """Void the uncaptured rest if the authorization has ended, or write the warning event if it ends soon."""
    movement_id = context.new_id()

    def decide(found: Found) -> Outcome | None:
        now = context.now()
        return lapse(found.order, found.plan, movement_id, now, context.new_id) or warn(found.order, now)

    await settle(context, merchant_id, order_id, decide)
