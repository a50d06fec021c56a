"""The page of a checkout that waits for a person's answer, and the notice after the answer.

Anybody with the link can open the page. Only the browser that verified the order's phone number sees the last digits
of that number.
"""

from __future__ import annotations

from datetime import datetime
from zoneinfo import ZoneInfo

from starlette.requests import Request
from starlette.responses import Response

from cuota.core.consumer import zone_of
from cuota.core.dates import time_of_day
from cuota.core.risk.review import ReviewState
from cuota.db.checkout.loaded import Checkout
from cuota.flows.checkout.submit_checkout import OTHER_NUMBER
from cuota.web.pages.checkout.session import page_address
from cuota.web.pages.checkout.view import common, masked, place_of
from cuota.web.pages.render import page
from cuota.web.service import service_of

# The page reloads after this many seconds, even without scripts. The consumer also gets the answer by message.
LOOKS_AGAIN_SECONDS = 20


def reviewing(request: Request, checkout: Checkout, secret: str) -> Response:
    """Return the page for an order that waits for a person."""
    order = checkout.order
    assert order.review_by is not None
    late = service_of(request).context.now() >= order.review_by
    by, ends = _time(checkout, order.review_by), _time(checkout, order.expires_at)
    where = (
        f"by text message to {masked(checkout.session.phone)}" if _is_theirs(checkout) else "by text message"
    )
    lead = (
        "The time for our answer has ended. The answer is on its way to you."
        if late
        else f"We need a little more time: a person is reviewing your order. The answer comes {where}, by {by} at the latest."
    )
    context = {
        **common(request, checkout, secret, title="We are looking at your order", lead=lead),
        "texts": [
            "Nothing has been charged. Nothing is charged before you confirm.",
            f"If the answer is yes, the message has a link. You confirm the order once more and pay, until {ends}.",
            "If the answer is no, you get the reasons in writing, and can choose another way to pay in the shop.",
            "You do not have to wait here: you can close this page. If you leave it open, it shows the answer automatically.",
        ],
    }
    response = page(request, "review.html", context, place=place_of(checkout))
    # Reload the page's own address. This answer may belong to a form, which must not be sent again.
    response.headers["Refresh"] = f"{LOOKS_AGAIN_SECONDS}; url={page_address(checkout, secret)}"
    return response


def answer_notice(checkout: Checkout) -> str | None:
    """Return what to say on the steps of a checkout that a person has approved; None for other checkouts."""
    order = checkout.order
    if order.review is not ReviewState.APPROVED:
        return None
    ends = _time(checkout, order.expires_at)
    if not checkout.verified:
        return f"You can complete this order now, until {ends}. Confirm the phone number that you used for the order."
    if not _is_theirs(checkout):
        return OTHER_NUMBER
    return f"We reviewed your order. You can complete it until {ends}. Nothing has been charged."


def _is_theirs(checkout: Checkout) -> bool:
    """Return whether this browser verified the phone number of the consumer whose order was referred."""
    session = checkout.session
    return checkout.verified and session.consumer_id is not None and session.consumer_id == checkout.reviewed


def _time(checkout: Checkout, at: datetime) -> str:
    profile = checkout.session.profile
    zone = zone_of(profile.address.state if profile else checkout.document.address.get("state"))
    return time_of_day(at.astimezone(ZoneInfo(zone)))
