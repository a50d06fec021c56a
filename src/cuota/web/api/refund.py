"""`POST /order/{orderId}/refund`."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from cuota.core.order.movement import MovementKind
from cuota.flows.order.refund_order import preview_refund, refund_order
from cuota.web.api import movement


async def refund(request: Request) -> Response:
    """Refund part or all of an order. With `?dryRun=true`, only return the effect that a refund would have."""
    return await movement.answer(request, MovementKind.REFUND, refund_order, preview_refund)
