"""Capture an order, or say what would happen."""

from __future__ import annotations

from uuid import UUID

from cuota.core.order.capture import capture
from cuota.core.order.movement import Movement, MovementRequest
from cuota.core.order.outcome import Outcome
from cuota.db.order import orders
from cuota.db.order.orders import Found
from cuota.db.session import Session
from cuota.flows.context import Context
from cuota.flows.order.move_money import Preview, Remember, move, preview


async def capture_order(
    context: Context,
    merchant_id: UUID,
    order_id: UUID,
    asked: MovementRequest,
    remember: Remember | None = None,
) -> Movement:
    """Capture; raises Refused."""

    async def read(session: Session) -> Found | None:
        return await orders.read(session, merchant_id, order_id, asked.kind, asked.reference, with_plan=False)

    def decide(found: Found, movement_id: UUID) -> Outcome:
        return capture(found.order, asked, movement_id, context.now())

    return await move(context, merchant_id, order_id, asked, read, decide, remember)


async def preview_capture(
    context: Context, merchant_id: UUID, order_id: UUID, asked: MovementRequest
) -> Preview:
    """Decide and change nothing; raises what the real call would."""

    def decide(found: Found, movement_id: UUID) -> Outcome:
        return capture(found.order, asked, movement_id, context.now())

    return await preview(context, merchant_id, order_id, asked, decide)
