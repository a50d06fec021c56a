"""`POST /rails/card/events`: a card processor reports what happened. The processor's signature is its only credential."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from cuota.core.refusal import Code, Refused
from cuota.db.order.documents import encode
from cuota.flows.plan.store_card_event import store_card_event
from cuota.rails.card.protocol import BadEvent
from cuota.rails.unavailable import RailUnavailable
from cuota.web.body import read_bytes
from cuota.web.service import service_of

_RECEIVED = encode({"received": True})
_HEADERS = {"Cache-Control": "no-store"}
NOT_SIGNED = (
    "No card processor of this installation signed this message. Check that the webhook's signing secret in the service's"
    " settings is the one that the processor shows for this endpoint, that nothing on the way changes the body, and that the"
    " clocks agree."
)


async def receive(request: Request) -> Response:
    """Verify and store an event, and answer 200.

    The answer is the same for an event that is already known, and for one that is not about a payment of this service.
    """
    body = await read_bytes(request)
    context = service_of(request).context
    try:
        rail, event = await context.rails.card.read_event(dict(request.headers), body)
    except BadEvent:
        raise Refused(Code.MALFORMED_REQUEST, NOT_SIGNED) from None
    except RailUnavailable:
        # The processor sends the event again later.
        raise Refused(
            Code.UNAVAILABLE, "The card processor did not answer a question about this event."
        ) from None
    if event is not None:
        await store_card_event(context, rail, event)
    return Response(_RECEIVED, headers=_HEADERS, media_type="application/json")
