"""`POST /rails/card/events`: card processors report what happened to charges, refunds, cards and disputes."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from cuota.core.refusal import Code, Refused
from cuota.flows.plan.card_events import receive_event
from cuota.rails.card.protocol import BadEvent
from cuota.rails.unavailable import RailUnavailable
from cuota.web.body import MOST_BYTES, read_bytes
from cuota.web.service import service_of


async def receive(request: Request) -> Response:
    """Store an event that one of our processors signed. The answer to a repeated event is the same."""
    body = await read_bytes(request, MOST_BYTES)
    context = service_of(request).context
    headers = {
        name.decode("latin-1").lower(): value.decode("latin-1") for name, value in request.scope["headers"]
    }
    try:
        rail, event = await context.rails.card.read_event(headers, body)
    except BadEvent:
        raise Refused(
            Code.INVALID_SIGNATURE,
            "No card processor of this installation signed this message. Check the endpoint's signing secret, and the clock.",
        ) from None
    except RailUnavailable:
        raise Refused(
            Code.UNAVAILABLE, "The card processor cannot be reached to read this event. Send it again."
        ) from None
    if event is not None:
        await receive_event(context, rail, event)
    return Response(status_code=204, headers={"Cache-Control": "no-store"})
