"""What the checkout's templates are given: texts ready to read."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from starlette.requests import Request

from cuota.core import money
from cuota.core.agreement import day
from cuota.core.consumer import Profile
from cuota.core.finance import terms
from cuota.core.installment import Installment
from cuota.flows.checkout import Checkout
from cuota.web.addresses import origin_of, with_query
from cuota.web.pages.session import base_path, csrf_of
from cuota.web.service import service_of

STEPS = 4


def plan_of(
    plan: Sequence[Installment], currency: str, *, finance: bool = True, today: bool = True
) -> dict[str, object]:
    """The picture of a plan; `today`: on the day of its first payment."""
    payments = [
        {
            "number": item.number,
            "label": "Today" if today and item.number == 1 else day(item.due_on),
            "iso": item.due_on.isoformat(),
            "amount": money.shown(item.total, currency),
            "state": _state(item),
        }
        for item in plan
    ]
    costs = any(item.fee for item in plan)
    return {
        "payments": payments,
        "total": money.shown(sum(item.total for item in plan), currency),
        "no_cost": not costs,
        "finance": _finance(plan, currency) if costs and finance else None,
    }


def _state(item: Installment) -> str:
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
    return [
        {
            "name": item["name"] or item["description"] or item["sku"] or "Item",
            "quantity": item["quantity"] if item["quantity"] is not None else 1,
            "amount": _line_amount(item, currency),
        }
        for item in document["items"] or []
    ]


def _line_amount(item: dict[str, Any], currency: str) -> str:
    if item["price"] is None:
        return ""
    quantity = item["quantity"] if item["quantity"] is not None else 1
    exact = Decimal(item["price"]) * Decimal(quantity)
    if abs(exact) >= 10**14:
        return ""
    return money.shown(int((exact * 100).to_integral_value(ROUND_HALF_UP)), currency)


def _charges(document: dict[str, Any], currency: str) -> list[dict[str, str]]:
    """What is part of the order's total; a fee for the plan is not, and stands with the plan."""
    named = (("Shipping", document["shippingAmount"]), ("Tax", document["taxAmount"]))
    return [
        {"label": label, "amount": money.shown(int(Decimal(amount) * 100), currency)}
        for label, amount in named
        if amount is not None and Decimal(amount)
    ]


def common(
    request: Request,
    checkout: Checkout,
    secret: str,
    *,
    title: str,
    lead: str | None,
    step: int | None = None,
) -> dict[str, object]:
    """What every page of a checkout is given."""
    order, document = checkout.order, checkout.document.value
    return {
        "page": {"title": title, "lead": lead, "step": step, "steps": STEPS},
        "merchant": {"name": checkout.merchant.name},
        "total": money.shown(order.amount, order.currency),
        "sandbox": service_of(request).settings.sandbox,
        "form": {"action": base_path(order.merchant_id, order.order_id), "csrf": csrf_of(request, secret)},
        "errors": {},
        "notice": None,
        "values": {},
        "lines": _lines(document, order.currency),
        "charges": _charges(document, order.currency),
    }


def payer_of(profile: Profile) -> dict[str, str]:
    """Who pays, for the last look before the button."""
    place = profile.address
    street = f"{place.line1}, {place.line2}" if place.line2 else place.line1
    return {
        "name": profile.name,
        "email": profile.email,
        "address": f"{street}\n{place.city}, {place.state} {place.postcode}",
    }


def masked(phone: str | None) -> str:
    """A number of which only the end is shown."""
    return f"•••• ••{phone[-2:]}" if phone else ""


def way_back(checkout: Checkout, *, success: bool) -> str:
    """The merchant's address with token and orderId appended."""
    address = checkout.document.confirm_url if success else checkout.document.cancel_url
    return with_query(address, token=str(checkout.token), orderId=str(checkout.order.order_id))


def cancel_origin(checkout: Checkout) -> str:
    """Leaving is a form that ends at the merchant: its origin must be named in the policy."""
    return origin_of(checkout.document.cancel_url)
