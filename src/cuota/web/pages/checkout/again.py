"""The first page of a checkout in a browser that knows its consumer: one button, and the card that pays.

It shows brand and last digits of the card and the name in the agreement, nothing else of the person: whoever has only
the link sees the page that asks for a phone number.
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from cuota.core import money
from cuota.core.checkout.card import card_brand
from cuota.core.checkout.start import Display
from cuota.core.order.order import Order, Status
from cuota.flows.checkout.recognize_consumer import Offer, find_offer
from cuota.flows.checkout.remember_browser import forget_browser, remember_browser
from cuota.flows.checkout.take_step import Checkout, Problem, propose
from cuota.web.pages.checkout.known_browser import drop_token, keep_token, token_of
from cuota.web.pages.checkout.view import common, masked, place_of, plan_of
from cuota.web.pages.render import page
from cuota.web.service import service_of


async def offered(
    request: Request, checkout: Checkout, secret: str, notice: str | None = None
) -> Response | None:
    """The page, where this browser is offered its card; None: it is asked for a phone number as any other."""
    offer = await find_offer(service_of(request).context, checkout, token_of(request))
    return None if offer is None else _page(request, checkout, secret, offer, notice)


async def refused(request: Request, checkout: Checkout, secret: str, problem: Problem) -> Response | None:
    """The page again, saying what was wrong; None where there is no offer any more."""
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
        "notice": notice,
    }
    return page(request, "again.html", context, place=place_of(checkout))


async def remember(request: Request, response: Response, checkout: Checkout, order: Order) -> None:
    """An approved order makes this browser known for 90 days from now; in a frame no cookie is kept."""
    consumer_id = checkout.session.consumer_id
    if order.status is not Status.APPROVED or consumer_id is None or checkout.display is Display.IFRAME:
        return
    context = service_of(request).context
    ids = (order.merchant_id, order.order_id)
    keep_token(request, response, await remember_browser(context, consumer_id, *ids, token_of(request)))


async def forget(request: Request, response: Response) -> None:
    """Not you? This browser knows nobody from here on."""
    token = token_of(request)
    if token is not None:
        await forget_browser(service_of(request).context, token)
    drop_token(request, response)
