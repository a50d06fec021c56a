"""`POST /order/{orderId}/void`."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from cuota.core.order.movement import MovementKind
from cuota.flows.order.void_order import preview_void, void_order
from cuota.web.api import movement


async def void(request: Request) -> Response:
    """Void part or all of an order. With `?dryRun=true`, only return the effect that a void would have."""
    return await movement.answer(request, MovementKind.VOID, void_order, preview_void)
