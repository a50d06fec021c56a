"""The result pages of a checkout: approved, declined, abandoned, or still waiting for the bank.

In the redirect flow, the page sends the browser back to the merchant automatically, even without scripts. The answer to the
form cannot redirect to the merchant directly: browsers apply the policy `form-action` to every redirect after a form, also
to redirects of the merchant's server (to www, to https), and would block them.
"""

from __future__ import annotations

from datetime import date

from starlette.requests import Request
from starlette.responses import Response

from cuota.core import money
from cuota.core.checkout.ending import CARD_TRIES
from cuota.core.checkout.start import Display, Integration
from cuota.core.dates import day
from cuota.core.installment import charge_day, upcoming
from cuota.core.order.order import Status
from cuota.core.refusal import Refused
from cuota.core.risk.adverse import sentences
from cuota.db.checkout import sdk_checkouts
from cuota.db.checkout.loaded import Checkout
from cuota.db.risk import decisions
from cuota.flows.checkout.issue_card import reveal_card
from cuota.flows.checkout.take_step import consumer_day, consumer_zone
from cuota.flows.order.checkout_result import close_reason, result_of
from cuota.web.pages.checkout.session import page_address
from cuota.web.pages.checkout.view import common, expired_words, place_of, plan_of, told, way_back
from cuota.web.pages.render import page
from cuota.web.service import service_of

# The time that a declined consumer has to read the reasons. The reasons are also sent as a message.
_READ_SECONDS = 3


async def result(request: Request, checkout: Checkout, secret: str, *, leaving: bool = False) -> Response:
    """Return the page with the result of the checkout and the link back to the shop.

    Details of the plan and the reasons of a decline are shown only in a browser that verified the number of the consumer who paid
    or was declined.
    `leaving`: the consumer has just pressed the cancel control.
    """
    order, shop = checkout.order, checkout.merchant.shown_name
    approved = order.status is Status.APPROVED
    back = way_back(checkout, success=approved)
    goes = _goes_after(checkout, leaving=leaving) if back else None
    today = consumer_day(service_of(request).context, checkout)
    headline, text = _words(checkout, today)
    try:
        message = await _merchant_message(request, checkout)
    except Refused:
        # The issuer of the virtual card does not answer. This page reloads automatically.
        return working(request, checkout, secret)
    context = {
        **common(request, checkout, secret, title=headline, lead=None),
        "outcome": order.status.lower(),
        "headline": headline,
        "text": text,
        "pay": message,
        "return_url": back,
        "return_label": f"Back to {shop}" if approved else f"Return to {shop}",
        "goes_after": goes,
        "going": f"Taking you back to {shop}…",
    }
    if order.status is Status.DECLINED:
        context["reasons"] = await _why(request, checkout)
    if approved and checkout.is_payer:
        # Only on the day of the first payment is this payment called "Today".
        zone = None if checkout.plan[0].due_on == today else consumer_zone(checkout)
        context["plan"] = plan_of(checkout.plan, order.currency, finance=False, zone=zone)
    return page(request, "result.html", context, place=place_of(checkout))


def _goes_after(checkout: Checkout, *, leaving: bool) -> int | None:
    """Return the seconds after which the page automatically goes back to the merchant; None if it waits for a click."""
    order = checkout.order
    if order.status is Status.ABANDONED and not (checkout.left or leaving):
        return None  # the time ran out, and the consumer should read that first
    has_return_url = checkout.document.confirm_url is not None
    return 0 if has_return_url and order.status is not Status.DECLINED else _READ_SECONDS


async def _why(request: Request, checkout: Checkout) -> list[str]:
    """Return why the risk decision declined the order. Empty unless this browser verified the consumer's phone number."""
    order, consumer_id = checkout.order, checkout.session.consumer_id
    if not checkout.verified or consumer_id is None:
        return []
    pool = service_of(request).context.pool
    made = await decisions.read_declined(pool, order.merchant_id, order.order_id, consumer_id)
    if made is None:
        return []
    limit = "" if made.limit is None else money.shown(made.limit, order.currency)
    return sentences(made.reasons, limit)


async def _merchant_message(request: Request, checkout: Checkout) -> dict[str, object] | None:
    """Return the message about the end of the checkout for the merchant's page; None in the redirect flow.

    The customer's name is included only if this browser verified the customer's phone number.
    """
    order, session, start = checkout.order, checkout.session, checkout.start
    if checkout.display is Display.REDIRECT or start is None:
        return None
    context = service_of(request).context
    if order.status is not Status.APPROVED:
        return told(checkout, "closed", close_reason(order, left=checkout.left) or "")
    payer = None
    if checkout.verified and session.consumer_id is not None:
        ids = (order.merchant_id, order.order_id)
        payer = await sdk_checkouts.read_payer(context.pool, *ids, session.consumer_id)
    card = None
    # The card is usable only for some minutes after it is revealed. A HEAD request must not start that time.
    if start.integration is Integration.VIRTUAL_CARD and request.method != "HEAD":
        card = await reveal_card(context, checkout)
    return told(checkout, "complete", result={**(result_of(order, payer, start) or {}), **(card or {})})


def _words(checkout: Checkout, today: date) -> tuple[str, list[str]]:
    order = checkout.order
    shop = checkout.merchant.shown_name
    if order.status is Status.APPROVED and not checkout.is_payer:
        return "Your order is confirmed", [f"{shop} has your order."]
    if order.status is Status.APPROVED:
        first = checkout.plan[0]
        on = "today" if first.due_on == today else f"on {day(first.due_on)}"
        paid = f"You paid {money.shown(first.total + first.returned, order.currency)} {on}."
        following = _following(checkout)
        return "Your order is confirmed", [f"{paid}{following}", f"{shop} has your order."]
    if order.status is Status.DECLINED:
        if order.card_failures >= CARD_TRIES and checkout.is_payer:
            text = "Your cards were declined by their banks, so nothing was paid."
        else:
            text = "We could not approve this purchase. Nothing was charged."
        return "This payment was not approved", [text, "You can choose another way to pay in the shop."]
    if checkout.left:
        return "This payment was canceled", ["Nothing was charged.", "Your cart is still in the shop."]
    return "This checkout expired", [expired_words(order), "Your cart is still in the shop."]


def _following(checkout: Checkout) -> str:
    """Return the sentence about the next payment. The page may be opened again later, when payments were made or are paused."""
    zone = consumer_zone(checkout)
    due = next(iter(upcoming(checkout.plan, zone)), None)
    if due is None or due.failures or checkout.order.paused_at is not None:
        return ""
    amount = money.shown(due.total, checkout.order.currency)
    return f" Your next payment is {amount} on {day(charge_day(due, zone))}."


def working(request: Request, checkout: Checkout, secret: str) -> Response:
    """Return the page for a charge in progress. The page reloads itself after 3 seconds, even without scripts."""
    lead = "We are asking your bank now. Please do not pay a second time."
    context = common(request, checkout, secret, title="Your payment is on its way", lead=lead)
    response = page(request, "working.html", context, place=place_of(checkout))
    # Reload the page's own address. This answer may belong to a form, which must not be sent again.
    response.headers["Refresh"] = f"3; url={page_address(checkout, secret)}"
    return response
