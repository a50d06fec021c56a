"""Voids the uncaptured part of an order, or returns the result that a void would have (dry run)."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from cuota.core.order.movement import Movement, MovementRequest
from cuota.core.order.outcome import Outcome
from cuota.core.order.void import void
from cuota.db.order.orders import Found
from cuota.flows.context import Context
from cuota.flows.order.move_money import Preview, move, preview
from cuota.flows.settle import MakeAnswer


async def void_order(
    context: Context,
    merchant_id: UUID,
    order_id: UUID,
    asked: MovementRequest,
    keep: MakeAnswer | None = None,
) -> Movement:
    """Void the amount and return the movement. Raises Refused. `keep` stores the response for the Idempotency-Key."""
    return await move(context, merchant_id, order_id, asked, _decide(context, asked), keep)


async def preview_void(
    context: Context, merchant_id: UUID, order_id: UUID, asked: MovementRequest
) -> Preview:
    """Return the result that the void would have, and change nothing. Raises the same exceptions as `void_order`."""
    return await preview(context, merchant_id, order_id, asked, _decide(context, asked))


def _decide(context: Context, asked: MovementRequest) -> Callable[[Found, UUID], Outcome]:
    def decide(found: Found, movement_id: UUID) -> Outcome:
        return void(
            found.order, found.plan, asked, movement_id, context.now(), context.new_id, found.consumer_zone
        )

    return decide
