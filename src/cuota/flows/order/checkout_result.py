"""What the merchant's page, and its webhook, are told about who paid and where it is sent."""

from __future__ import annotations

import json
from typing import Any

from cuota.core.checkout.start import Flow, Start
from cuota.core.money import decimal_from
from cuota.core.order.order import Order, Status

COUNTRY = "US"


def customer_of(payer: str) -> dict[str, object]:
    """The customer as the consumer described themselves; `payer` is the plan's stored JSON."""
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
    """Where an express order is sent; None for any other."""
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


def result_of(order: Order, payer: str | None, start: Start) -> dict[str, object] | None:
    """The argument of `onComplete`, without a card; None while the order is not approved.

    Without `payer` it names nobody: for a browser that proved nothing.
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
