"""`/sandbox-processor/confirm/{key}`: the page of the simulated bank, on which a consumer confirms a charge (3-D Secure)."""

from __future__ import annotations

from urllib.parse import parse_qs
from uuid import UUID

from starlette.requests import Request
from starlette.responses import Response

from cuota.core import money
from cuota.core.checkout.card import card_name
from cuota.core.money import CURRENCY
from cuota.core.refusal import Refused
from cuota.web.body import MOST_SMALL_BYTES, read_bytes
from cuota.web.ids import guid
from cuota.web.pages.checkout.session import is_foreign, see_other
from cuota.web.pages.processor.cards import processor_of
from cuota.web.pages.render import ANYWHERE, PageContext, page, problem

_UNKNOWN = "There is nothing to confirm here", "Go back to the shop, or to the page on which you paid."
_ENDED = (
    "This confirmation has ended",
    "It was answered already, or took too long. Nothing is charged twice.",
)
_PASSED = {"confirm": True, "refuse": False}


def _key(request: Request) -> UUID | None:
    try:
        return guid(request.path_params["key"])
    except Refused:
        return None


async def show(request: Request) -> Response:
    """Show the amount and the card, with a button to confirm and one to refuse."""
    processor, key = processor_of(request), _key(request)
    waiting = await processor.find_waiting(key) if key else None
    if waiting is None:
        return await _over(request, key)
    context: PageContext = {
        "page": {
            "title": "Simulated bank: confirm this payment",
            "lead": "In the sandbox, this page stands for the page of your card's bank.",
            "step": None,
            "steps": 0,
        },
        "sandbox": True,
        "amount": money.shown(waiting.amount, CURRENCY),
        "card": card_name(waiting.brand, waiting.last4),
        "address": request.url.path,
    }
    return page(request, "bank.html", context, place=ANYWHERE)


async def answer(request: Request) -> Response:
    """Record the consumer's answer, and redirect to the page on which the consumer paid.

    A second answer changes nothing.
    """
    processor, key = processor_of(request), _key(request)
    if is_foreign(request):
        text = "It did not come from the bank's page. Nothing was changed."
        return problem(request, 403, "This form cannot be used", text, place=ANYWHERE)
    body = await read_bytes(request, MOST_SMALL_BYTES)
    try:
        given = parse_qs(body.decode("ascii", "replace"), max_num_fields=10).get("answer", [""])[-1]
    except ValueError:
        given = ""  # more fields than the page's own form has
    if key is None or given not in _PASSED:
        return await _over(request, key) if key is None else see_other(request.url.path)
    back = await processor.confirm(key, passed=_PASSED[given]) or await processor.way_back(key)
    return see_other(back) if back else await _over(request, key)


async def _over(request: Request, key: UUID | None) -> Response:
    back = await processor_of(request).way_back(key) if key else None
    if back is None:
        return problem(request, 404, *_UNKNOWN, place=ANYWHERE)
    return problem(request, 404, *_ENDED, back=(back, "Go back to your payment"), place=ANYWHERE)
