"""An authorization ends: its merchant is told ahead, and what was never captured is voided by the service."""

from __future__ import annotations

from uuid import UUID

from cuota.core.order.outcome import Outcome
from cuota.core.order.void import lapse, warn
from cuota.db.order.orders import Found
from cuota.flows.context import Context
from cuota.flows.settle import settle


async def expire_authorization(context: Context, merchant_id: UUID, order_id: UUID) -> None:
    """Void the uncaptured rest, if the authorization has ended; tell the merchant ahead, if it soon does."""
    movement_id = context.new_id()

    def decide(found: Found) -> Outcome | None:
        now = context.now()
        return lapse(found.order, found.plan, movement_id, now, context.new_id) or warn(found.order, now)

    await settle(context, merchant_id, order_id, decide)
