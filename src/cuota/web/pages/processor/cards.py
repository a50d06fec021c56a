"""`POST /sandbox-processor/cards`: the simulated processor receives a card from its own script, and answers with a token.

This path exists only if the sandbox's card rail accepts new cards. A real processor has such a path on its own servers.
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from cuota.core.checkout.card import BadCard, read_card
from cuota.core.consumer import ZONES
from cuota.core.refusal import Code, Refused
from cuota.flows.checkout.days import local_day
from cuota.rails.card.sandbox import SandboxCardRail
from cuota.web.body import MOST_SMALL_BYTES, parse_object, read_bytes, require_json
from cuota.web.pages.checkout.session import is_foreign
from cuota.web.service import service_of

_FIELDS = ("number", "expiry", "cvc")
_HEADERS = {"Cache-Control": "no-store"}
# The processor does not know where the consumer lives. In this zone, the month ends last.
_LAST_ZONE = ZONES["AS"]


def processor_of(request: Request) -> SandboxCardRail:
    """Return the simulated processor. Raises Refused(not_found) if another card rail accepts new cards."""
    processor = service_of(request).context.rails.card.sandbox
    if processor is None:
        raise Refused(Code.NOT_FOUND, "There is nothing at this path. The API is described at /docs.")
    return processor


async def cards(request: Request) -> Response:
    """Check and store a card, and answer with its token, or with a text for each wrong field."""
    processor = processor_of(request)
    if is_foreign(request):
        raise Refused(Code.ORIGIN_NOT_REGISTERED, "Only this service's own pages may send a card here.")
    require_json(request)
    body = parse_object(await read_bytes(request, MOST_SMALL_BYTES))
    number, expiry, cvc = (_text(body.get(name)) for name in _FIELDS)
    try:
        card = read_card(number, expiry, cvc, local_day(service_of(request).context.now(), _LAST_ZONE))
    except BadCard as bad:
        return JSONResponse({"errors": bad.errors}, 400, _HEADERS)
    return JSONResponse({"token": await processor.tokenize(card)}, 200, _HEADERS)


def _text(value: object) -> str:
    """Return a field's text; "" for any other value, so that the answer reports the field as missing."""
    return value if isinstance(value, str) else ""
