"""The first page of a checkout in a remembered browser: one button pays with the consumer's card.

The page shows only this personal data: the brand and last digits of the card, the end of the phone number, and the name
in the agreement. A browser that is not remembered gets the page with the phone form instead.
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from cuota.core import money
from cuota.core.checkout.card import card_brand
from cuota.core.checkout.start import Display
from cuota.core.order.order import Order, Status
from cuota.db.checkout.loaded import Checkout
from cuota.flows.afterwards import afterwards
from cuota.flows.checkout.recognize_consumer import Offer, find_offer
from cuota.flows.checkout.remember_browser import forget_browser, remember_browser
from cuota.flows.checkout.take_step import Problem, propose
from cuota.web.pages.checkout.known_browser import drop_token, keep_token, token_of
from cuota.web.pages.checkout.reviewing import answer_notice
from cuota.web.pages.checkout.session import keep_secret, kept_secret
from cuota.web.pages.checkout.view import common, masked, place_of, plan_of
from cuota.web.pages.render import page
from cuota.web.service import service_of

# The cookie with the order whose payment waits for its bank. A consumer has 20 minutes for the confirmation, and the
# bank's answer may come later.
_WAITS = "waits"
_WAITS_SECONDS = 24 * 3600


async def offered(
    request: Request, checkout: Checkout, secret: str, notice: str | None = None
) -> Response | None:
    """Return the page if this browser can pay with its consumer's card; None if it must ask for a phone number."""
    offer = await find_offer(service_of(request).context, checkout, token_of(request))
    return None if offer is None else _page(request, checkout, secret, offer, notice)


async def refused(request: Request, checkout: Checkout, secret: str, problem: Problem) -> Response | None:
    """Return the page again with an error message; None if the card is no longer offered."""
    response = await offered(request, checkout, secret, problem.notice)
    if response is not None:
        response.status_code = 400
    return response


def _page(request: Request, checkout: Checkout, secret: str, offer: Offer, notice: str | None) -> Response:
    currency = checkout.order.currency
    proposed = propose(service_of(request).context, checkout, offer.profile)
    today = money.shown(proposed.plan[0].total, currency)
    card = f"{card_brand(offer.card.brand)} •••• {offer.card.last4}"
    lead = "You paid in this browser before. Your card pays the first installment now and the rest on their dates."
    context = {
        **common(request, checkout, secret, title="Welcome back", lead=lead),
        "plan": plan_of(proposed.plan, currency),
        "agreement": {"text": list(proposed.agreement.paragraphs), "hash": proposed.agreement.hash},
        "pay_label": f"Pay {today} today with {card}",
        "phone_masked": masked(offer.consumer.phone),
        "notice": notice or answer_notice(checkout),
        "notice_tone": "error" if notice else "calm",
    }
    return page(request, "again.html", context, place=place_of(checkout))


async def remember(request: Request, response: Response, checkout: Checkout, order: Order) -> None:
    """Remember this browser for 90 days after an approved order.

    In a frame this does nothing, because browsers keep no cookie there.
    """
    consumer_id = checkout.session.consumer_id
    if order.status is not Status.APPROVED or consumer_id is None or checkout.display is Display.IFRAME:
        return
    context = service_of(request).context
    ids = (order.merchant_id, order.order_id)
    with afterwards("that a browser is remembered"):
        keep_token(request, response, await remember_browser(context, consumer_id, *ids, token_of(request)))


def remember_later(request: Request, response: Response, checkout: Checkout) -> None:
    """Store in this browser that its payment waits for its bank, so that `remember_after` recognizes the browser."""
    if checkout.display is not Display.IFRAME:
        keep_secret(request, response, _WAITS, str(checkout.order.order_id), _WAITS_SECONDS)


async def remember_after(request: Request, response: Response, checkout: Checkout) -> None:
    """Remember this browser if its payment had waited for its bank and is approved now.

    The cookie is not a secret: a browser that did not pay can have it, too.
    """
    if kept_secret(request, _WAITS) != str(checkout.order.order_id) or request.method == "HEAD":
        return
    if checkout.paid_here:
        await remember(request, response, checkout, checkout.order)
    keep_secret(request, response, _WAITS, "", 0)


async def forget(request: Request, response: Response) -> None:
    """Stop remembering this browser, after the consumer pressed "Not you?"."""
    token = token_of(request)
    if token is not None:
        await forget_browser(service_of(request).context, token)
    drop_token(request, response)
