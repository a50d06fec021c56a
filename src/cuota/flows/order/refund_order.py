"""Refunds an order, or returns the result that a refund would have (dry run)."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from cuota.core.dispute.claims import after_refund
from cuota.core.installment import NOTHING
from cuota.core.order.movement import Movement, MovementRequest
from cuota.core.order.outcome import Outcome
from cuota.core.order.refund import refund
from cuota.db.order.orders import Found
from cuota.flows.context import Context
from cuota.flows.order.move_money import Preview, move, preview
from cuota.flows.settle import MakeAnswer


async def refund_order(
    context: Context,
    merchant_id: UUID,
    order_id: UUID,
    asked: MovementRequest,
    keep: MakeAnswer | None = None,
) -> Movement:
    """Refund the amount and return the movement. Raises Refused. `keep` stores the response for the Idempotency-Key."""
    return await move(context, merchant_id, order_id, asked, _decide(context, asked), keep)


async def preview_refund(
    context: Context, merchant_id: UUID, order_id: UUID, asked: MovementRequest
) -> Preview:
    """Return the result that the refund would have, and change nothing. Raises the same exceptions as `refund_order`."""
    return await preview(context, merchant_id, order_id, asked, _decide(context, asked))


def _decide(context: Context, asked: MovementRequest) -> Callable[[Found, UUID], Outcome]:
    def decide(found: Found, movement_id: UUID) -> Outcome:
        claims = found.claims
        outcome = refund(
            found.order,
            found.plan,
            asked,
            movement_id,
            context.now(),
            context.new_id,
            found.terms,
            found.fees,
            claims.taken_back if claims else NOTHING,
            found.consumer_zone,
        )
        return after_refund(outcome, found.plan, claims, asked.amount, movement_id)

    return decide
