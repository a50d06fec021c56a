"""`POST /order/{orderId}/capture`."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from cuota.core.order.movement import MovementKind
from cuota.flows.order.capture_order import capture_order, preview_capture
from cuota.web.api import movement


async def capture(request: Request) -> Response:
    """Capture part or all of an order. With `?dryRun=true`, only return the effect that a capture would have."""
    return await movement.answer(request, MovementKind.CAPTURE, capture_order, preview_capture)
