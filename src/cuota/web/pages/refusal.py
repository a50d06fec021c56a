"""The error page that the gateway shows if it refuses a merchant's request that a shopper's browser sent.

The page has a link back to the shop, and the reasons for the merchant's developer.
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from cuota.core.refusal import Code, Refused
from cuota.core.wire.card_text import masked
from cuota.web.pages.render import PageContext, page
from cuota.web.problem import headers_of, status_of
from cuota.web.service import service_of

MOST_REASONS = 20
_LONGEST = 300
_WRONG = (
    "This payment could not be started",
    "The shop sent a request that we cannot read. Nothing was charged.",
)
_RANGE = (
    "This payment could not be started",
    "Orders of this amount cannot be paid in installments in this shop. Nothing was charged.",
)
_STOPPED = (
    "This payment could not be started",
    "This shop cannot take payments in installments right now. Nothing was charged.",
)
_OURS = (
    "We cannot answer right now",
    "Nothing was charged. Go back to the shop and try again in a moment.",
)


def refusal(request: Request, refused: Refused, back: str | None) -> Response:
    """Return the page. `back` is the merchant's cancel address, or None if the request had no signed cancel address."""
    status = status_of(refused)
    ours = status >= 500
    headline, text = _OURS if ours else _WRONG
    if refused.code is Code.AMOUNT_OUT_OF_RANGE:
        headline, text = _RANGE
    if refused.code in {Code.MERCHANT_SUSPENDED, Code.MERCHANT_NOT_APPROVED}:
        headline, text = _STOPPED
    reasons = [masked(f"{error.field} {error.message}"[:_LONGEST]) for error in refused.errors]
    more = len(reasons) - MOST_REASONS
    context: PageContext = {
        "page": {"title": headline, "lead": text, "step": None, "steps": 4},
        "sandbox": service_of(request).settings.sandbox,
        "back": back,
        "ours": ours,
        "code": refused.code,
        "message": "" if reasons else masked(refused.message),
        "reasons": reasons[:MOST_REASONS],
        "more": max(0, more),
        "hint": masked(str(hint)) if (hint := refused.facts.get("hint")) else None,
        "request_id": request.scope["request_id"],
    }
    response = page(request, "refusal.html", context, status=status)
    response.headers.update(headers_of(refused))
    return response
