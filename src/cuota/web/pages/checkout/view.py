"""Builds the values for the checkout's templates: texts that are ready to show."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import tzinfo
from decimal import Decimal
from typing import Any
from urllib.parse import urlencode
from uuid import UUID

from starlette.requests import Request

from cuota.core import money
from cuota.core.checkout.smi_state import CheckoutState, result_of
from cuota.core.checkout.start import Display, Integration, Start
from cuota.core.consumer import Profile, ShippingAddress
from cuota.core.dates import day
from cuota.core.installment import Installment, charge_day
from cuota.core.merchant import Merchant
from cuota.core.order.order import Order
from cuota.core.plan.finance import terms
from cuota.db.checkout.loaded import Checkout
from cuota.db.order.documents import Document, encode
from cuota.web.addresses import with_query
from cuota.web.pages.checkout.session import FRAMED, base_path, csrf_of
from cuota.web.pages.items import line_cents, quantity_text
from cuota.web.pages.logos import logo_address
from cuota.web.pages.render import ALONE, FramePolicy
from cuota.web.pages.support import support_links
from cuota.web.service import service_of


def plan_of(
    plan: Sequence[Installment], currency: str, *, finance: bool = True, zone: tzinfo | None = None
) -> dict[str, object]:
    """Return the values that show a plan.

    `zone` is the consumer's time zone, for a plan that has begun: the payments then have the days on which the card is charged. Without
    it, the first payment is due today. `finance`: include the finance charge and APR, if the plan has a fee.
    """
    days = [item.due_on if zone is None else charge_day(item, zone) for item in plan]
    payments = [
        {
            "number": item.number,
            "label": "Today" if zone is None and item.number == 1 else day(at),
            "iso": at.isoformat(),
            "amount": money.shown(item.returned if gone_back(item) else item.total, currency),
            "state": _state(item),
        }
        for item, at in zip(plan, days, strict=True)
    ]
    costs = any(item.fee for item in plan)
    return {
        "payments": payments,
        "total": money.shown(sum(item.total for item in plan), currency),
        "no_cost": not costs,
        "finance": _finance(plan, currency) if costs and finance else None,
    }


def gone_back(item: Installment) -> bool:
    """Return whether a payment was made and then fully returned to the card."""
    return item.paid and not item.total and item.returned > 0


def _state(item: Installment) -> str:
    if gone_back(item):
        return "returned"
    if item.state == "scheduled":
        return "today" if item.number == 1 else "due"
    return item.state


def _finance(plan: Sequence[Installment], currency: str) -> dict[str, str]:
    box = terms(plan)
    return {
        "apr": f"{box.apr}%",
        "finance_charge": money.shown(box.finance_charge, currency),
        "amount_financed": money.shown(box.amount_financed, currency),
        "total_of_payments": money.shown(box.total_of_payments, currency),
    }


def _lines(document: dict[str, Any], currency: str) -> list[dict[str, object]]:
    lines: list[dict[str, object]] = []
    for item in document["items"] or []:
        cents = line_cents(item)
        lines.append({
            "name": item["name"] or item["description"] or item["sku"] or "Item",
            "quantity": quantity_text(item),
            "amount": "" if cents is None else money.shown(cents, currency),
        })  # fmt: skip
    return lines


def _charges(document: dict[str, Any], currency: str) -> list[dict[str, str]]:
    """Return the shipping and tax amounts, which the order's total includes. The plan's fee is not part of the total."""
    named = (("Shipping", document["shippingAmount"]), ("Tax", document["taxAmount"]))
    return [
        {"label": label, "amount": money.shown(int(Decimal(amount) * 100), currency)}
        for label, amount in named
        if amount is not None and Decimal(amount)
    ]


def steps_of(checkout: Checkout) -> tuple[str, ...]:
    """Return the steps of this checkout, in order."""
    return (*("phone", "code", "details"), *(("shipping",) if checkout.express else ()), "pay")


def common(
    request: Request,
    checkout: Checkout,
    secret: str,
    *,
    title: str,
    lead: str | None,
    step: str | None = None,
) -> dict[str, object]:
    """Return the template values that every page of a checkout needs."""
    order, document = checkout.order, checkout.document.value
    number = steps_of(checkout).index(step) + 1 if step else None
    return {
        "page": {"title": title, "lead": lead, "step": number, "steps": len(steps_of(checkout))},
        "merchant": _merchant(checkout.merchant),
        "total": money.shown(order.amount, order.currency),
        "sandbox": service_of(request).settings.sandbox,
        "form": form_for(request, checkout, secret),
        "pay": told(checkout),
        "errors": {},
        "notice": None,
        "values": {},
        "lines": _lines(document, order.currency),
        "charges": _charges(document, order.currency),
    }


def _merchant(merchant: Merchant) -> dict[str, object]:
    """Return the merchant as the pages show it: its name and logo, and where to ask a question."""
    own = merchant.own
    return {
        "name": merchant.shown_name,
        "logo": logo_address(merchant.merchant_id, own.logo) if own.logo else None,
        "support": support_links(own.support_email, own.support_url),
    }


def form_for(request: Request, checkout: Checkout, secret: str) -> dict[str, str]:
    """Return the values that forms and links of a checkout's page need.

    Append `query` to an address without a query, and `more` to an address that already has one.
    """
    framed = urlencode({FRAMED: secret}) if checkout.display is Display.IFRAME else ""
    return {
        "action": base_path(checkout.order.merchant_id, checkout.order.order_id),
        "csrf": csrf_of(request, secret),
        "query": f"?{framed}" if framed else "",
        "more": f"&{framed}" if framed else "",
    }


def told(
    checkout: Checkout, outcome: str = "", message: str = "", result: dict[str, object] | None = None
) -> dict[str, object] | None:
    """Return the message that the page's script posts to the merchant's page; None if no merchant page listens.

    `outcome` is "complete" or "closed" ("" if the checkout is still open), `message` the reason for "closed", and
    `result` the checkout's result for "complete".
    """
    if checkout.display is Display.REDIRECT or checkout.start is None:
        return None
    return {
        "token": str(checkout.token),
        "origin": checkout.start.origin,
        "display": checkout.display,
        "outcome": outcome,
        "message": message,
        # The JSON is inside a script element, so it must not contain a closing tag.
        "result": encode(result).decode().replace("<", "\\u003c") if result else None,
    }


def place_of(checkout: Checkout) -> FramePolicy:
    """Return the frame policy of a checkout's pages.

    The pages may be in a frame on this merchant's pages, or in a popup that exchanges messages with its opener.
    """
    if checkout.display is Display.REDIRECT or checkout.start is None or checkout.start.origin is None:
        return ALONE
    if checkout.display is Display.POPUP:
        return FramePolicy(opened=True)
    return FramePolicy(ancestors=tuple(dict.fromkeys((checkout.start.origin, *checkout.merchant.origins))))


def expired_words(order: Order) -> str:
    """Return the text about an expired checkout, with the time that this order had."""
    minutes = round((order.expires_at - order.created_at).total_seconds() / 60)
    unit, count = ("hour", minutes // 60) if minutes >= 120 and minutes % 60 == 0 else ("minute", minutes)
    return f"This checkout expired after {count} {unit}{'' if count == 1 else 's'}. You were not charged."


def payer_of(profile: Profile) -> dict[str, str]:
    """Return the consumer's details, to review before paying."""
    place = profile.address
    street = f"{place.line1}, {place.line2}" if place.line2 else place.line1
    return {
        "name": profile.name,
        "email": profile.email,
        "address": f"{street}\n{place.city}, {place.state} {place.postcode}",
    }


def shipping_lines(shipping: ShippingAddress | None) -> dict[str, str] | None:
    """Return the shipping address, to review before paying; None without one."""
    if shipping is None:
        return None
    place = shipping.address
    street = f"{place.line1}, {place.line2}" if place.line2 else place.line1
    return {"name": shipping.name, "address": f"{street}\n{place.city}, {place.state} {place.postcode}"}


def masked(phone: str | None) -> str:
    """Return a phone number with only its last two digits visible."""
    return f"•••• ••{phone[-2:]}" if phone else ""


def way_back(checkout: Checkout, *, success: bool, expired: bool = False) -> str | None:
    """Return the merchant's address to go back to; None if the merchant's page is still open (popup or frame).

    The address gets the parameters `token` and `orderId`, or for shop systems (SMI) `result` and `checkoutId`.
    `expired` is true if the time of an open order is over.
    """
    if checkout.display is not Display.REDIRECT:
        return None
    ended = Ended(checkout.order, checkout.token, checkout.document, checkout.start, checkout.left)
    return merchant_address(ended, success=success, expired=expired)


@dataclass(frozen=True, slots=True)
class Ended:
    """The facts that select the address back to the merchant. `left` is true if the consumer canceled the checkout."""

    order: Order
    token: UUID
    document: Document
    start: Start | None
    left: bool


def merchant_address(ended: Ended, *, success: bool, expired: bool = False) -> str | None:
    """Return the same address as `way_back`, but without a session."""
    order, start = ended.order, ended.start
    address = ended.document.confirm_url if success else ended.document.cancel_url
    if address is None and start is not None and start.origin is not None:
        # pay.js had to redirect from the merchant's page, and the signed request has no address to return to.
        address = f"{start.origin}/"
    if address is None:
        return None
    if start is not None and start.integration is Integration.SMI:
        result = result_of(order, left=ended.left)
        if result is CheckoutState.CREATED:
            result = CheckoutState.EXPIRED if expired else CheckoutState.CANCELLED
        return with_query(address, result=result, checkoutId=str(order.order_id))
    return with_query(address, token=str(ended.token), orderId=str(order.order_id))
