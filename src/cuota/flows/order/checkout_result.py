"""The customer and the shipping address, as the merchant's page and webhook get them."""

from __future__ import annotations

import json
from typing import Any

from cuota.core.checkout.start import Flow, Start
from cuota.core.money import decimal_from
from cuota.core.order.order import Order, Status

COUNTRY = "US"


def customer_of(payer: str) -> dict[str, object]:
    """Return the customer as the consumer filled in the form; `payer` is the JSON stored with the plan."""
    given = json.loads(payer)
    return {
        "firstName": given["given_names"],
        "lastName": given["surname"],
        "email": given["email"],
        "phoneNumber": given.get("phone"),
        **_place(given["address"]),
    }


def _place(place: dict[str, Any]) -> dict[str, object]:
    return {
        "address1": place["line1"],
        "address2": place["line2"],
        "city": place["city"],
        "state": place["state"],
        "postalCode": place["postcode"],
        "country": COUNTRY,
    }


def shipping_of(payer: str | None) -> dict[str, object] | None:
    """Return the shipping address of an express order, or None for other orders."""
    given = json.loads(payer).get("shipping") if payer else None
    if given is None:
        return None
    place = given["address"]
    return {
        "name": given["name"],
        "line1": place["line1"],
        "line2": place["line2"],
        "city": place["city"],
        "state": place["state"],
        "postalCode": place["postcode"],
        "country": COUNTRY,
    }


def close_reason(order: Order, *, left: bool) -> str | None:
    """Return the argument of `onClose` for an order that ended without a payment; None for every other order.

    `left`: the consumer canceled the checkout.
    """
    if order.status is Status.DECLINED:
        return "declined"
    if order.status is not Status.ABANDONED:
        return None
    return "closed_by_customer" if left else "session_expired"


def result_of(order: Order, payer: str | None, start: Start) -> dict[str, object] | None:
    """Return the argument of `onComplete`, without a card, or None if the order is not approved.

    Without `payer`, the result contains no personal data. A browser that verified no number gets this result.
    """
    if order.status is not Status.APPROVED:
        return None
    shipping = shipping_of(payer) if start.flow is Flow.EXPRESS else None
    return {
        "customer": customer_of(payer) if payer else {},
        "orderId": str(order.order_id),
        **({"merchantFeeForPaymentPlan": decimal_from(order.fee)} if order.fee else {}),
        **({"shippingAddress": shipping} if shipping else {}),
    }
