"""Reads the body of a signed request (SDK or gateway). One refusal lists all failures.

The order may have a nested layout (with `customer` and `address`) or a flat one. If a request has both, the nested values
count, and a different flat value is an error.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from typing import Any
from uuid import UUID

from cuota.core.checkout.start import Display, Flow, Integration, Start
from cuota.core.consumer import typed_number
from cuota.core.merchant import BodyProfile, Merchant
from cuota.core.refusal import Code, FieldError, Refused
from cuota.flows.order.create_order import OrderRequest
from cuota.web.api import lenient
from cuota.web.api.order_body import (
    DESCRIPTION,
    REFERENCE,
    as_items,
    metadata,
    quantity,
    read_amounts,
    read_currency,
    web_address,
)
from cuota.web.api.profile import read_by_profile
from cuota.web.api.sdk_address import ADDRESS_SHAPES, read_address_of
from cuota.web.api.unknown import Shape, shape, unknown_fields
from cuota.web.fields import Check, Reader, WrongField, as_object, number, text, wrong_type
from cuota.web.ids import guid

MOST_DESCRIPTION = 100
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}", re.ASCII)


@dataclass(frozen=True, slots=True)
class SdkRequest:
    """A valid request: the order, how its checkout starts, and whether it is captured upon approval."""

    order: OrderRequest
    start: Start
    capture: bool


def merchant_id_of(body: dict[str, Any]) -> UUID:
    """Return the id of the merchant that the body names. Raises Refused if it is absent or not a GUID."""
    value = body.get("merchantId")
    try:
        return guid(value if isinstance(value, str) else "")
    except Refused:
        error = FieldError(
            "merchantId", "required" if value is None else "invalid", "must be the merchant's GUID"
        )
        raise Refused(
            Code.VALIDATION_FAILED, "merchantId must be the merchant's GUID.", errors=(error,)
        ) from None


def read_sdk_body(body: dict[str, Any], merchant: Merchant, *, https_only: bool, gateway: bool) -> SdkRequest:
    """Read the body. Raises Refused with all failures.

    `https_only`: the merchant's addresses must be https addresses (production). `gateway`: the request redirects the
    browser, so the addresses to return to are required.
    """

    def read(profile: BodyProfile) -> SdkRequest:
        return _read(
            body,
            merchant,
            forgiving=profile is BodyProfile.LENIENT,
            https_only=https_only,
            gateway=gateway,
        )

    checkout = read_by_profile(merchant, read)
    checkout.order.warnings.extend(unknown_fields(body, SHAPE))
    return checkout


def _read(
    body: dict[str, Any], merchant: Merchant, *, forgiving: bool, https_only: bool, gateway: bool
) -> SdkRequest:
    reader = Reader(lenient=forgiving)
    address = web_address(https_only=https_only)
    order = reader.read(body, "order", as_object, required=True) or {}
    if forgiving:
        body, order = lenient.normalised_signed(body), lenient.normalised_sdk(order)
    sums = read_amounts(reader, order, "order.")
    read_currency(reader, order, merchant, "order.currency", required=True)
    start = _start(reader, body, gateway=gateway)
    capture = reader.read(body, "capture", _flag)
    capture = True if capture is None else capture
    # The card network captures a virtual card, so the order must not be captured upon approval.
    capture = capture and start.integration is not Integration.VIRTUAL_CARD
    callback = reader.read(body, "callbackUrl", address) if body.get("callbackUrl") != "" else None
    if capture and callback is None and not any(error.field == "callbackUrl" for error in reader.errors):
        wrong = WrongField(
            "required", "is required when capture is true: the webhook to it reports what was captured"
        )
        reader.fail("callbackUrl", wrong)
    place = read_address_of(reader, order)
    document = {
        "consumer": _consumer(reader, order),
        "billing": place,
        "shipping": place if start.flow is Flow.EXPRESS else None,
        "description": reader.read(body, "description", DESCRIPTION),
        "items": _items(reader, order),
        "merchant": {
            "redirectConfirmUrl": reader.read(body, "redirectConfirmUrl", address, required=gateway),
            "redirectCancelUrl": reader.read(body, "redirectCancelUrl", address, required=gateway),
            "statusCallbackUrl": callback,
        },
        "merchantReference": (own := _reference(reader, body, order)),
        **sums.shown(),
        "metadata": reader.read(body, "metadata", metadata) or {},
        "promotions": None,
        "checkoutFlow": start.flow,
    }
    warnings = reader.finish()
    assert sums.amount is not None
    return SdkRequest(OrderRequest(sums.amount, sums.fee or 0, own, document, warnings), start, capture)


_PAGE_KINDS = (Integration.API, Integration.VIRTUAL_CARD)


def _start(reader: Reader, body: dict[str, Any], *, gateway: bool) -> Start:
    integration = _choice(reader, body, "integrationType", Integration.API, _PAGE_KINDS)
    flow = _choice(reader, body, "checkoutFlow", Flow.STANDARD, tuple(Flow))
    if gateway:
        return Start(Integration.GATEWAY, Display.REDIRECT, flow)
    display = _choice(reader, body, "display", Display.POPUP, tuple(Display))
    if integration is Integration.VIRTUAL_CARD and display is Display.REDIRECT:
        wrong = WrongField(
            "invalid", "must be popup or iframe: the page that starts the checkout receives the card"
        )
        reader.fail("display", wrong)
    return Start(integration, display, flow)


def _choice(reader: Reader, body: dict[str, Any], name: str, usual: Any, allowed: tuple[Any, ...]) -> Any:
    def check(value: Any) -> Any:
        if not isinstance(value, str):
            raise wrong_type("a string")
        if value not in allowed:
            raise WrongField("invalid", f"must be one of: {', '.join(allowed)}")
        return type(usual)(value)

    return reader.read(body, name, check) or usual


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise wrong_type("true or false")
    return value


def _reference(reader: Reader, body: dict[str, Any], order: dict[str, Any]) -> str:
    # The flat layout repeats the reference inside the order.
    nested = reader.read(order, "order.merchantReference", REFERENCE)
    own = reader.read(body, "merchantReference", REFERENCE, required=nested is None)
    if own is not None and nested is not None and own != nested:
        wrong = WrongField("conflict", "differs from merchantReference: send one of them, or the same")
        reader.fail("order.merchantReference", wrong)
    return str(own if own is not None else nested or "")


def _consumer(reader: Reader, order: dict[str, Any]) -> dict[str, Any] | None:
    customer = reader.read(order, "order.customer", as_object, prefill=True) or {}
    found = {
        "phoneNumber": either(reader, customer, order, "phoneNumber", text(0, 50)),
        "givenNames": either(reader, customer, order, "firstName", text(0, 250)),
        "surname": either(reader, customer, order, "lastName", text(0, 250)),
        "email": either(reader, customer, order, "email", text(0, 250)),
    }
    if found["phoneNumber"]:
        found["phoneNumber"] = typed_number(found["phoneNumber"])
    consumer = {name: value or None for name, value in found.items()}
    return consumer if any(consumer.values()) else None


def either(
    reader: Reader, customer: dict[str, Any], order: dict[str, Any], name: str, check: Check
) -> str | None:
    """Read a field of the customer from the nested or the flat layout. Two different values are an error."""
    nested = reader.read(customer, f"order.customer.{name}", check, prefill=True)
    flat = reader.read(order, f"order.{name}", check, prefill=True)
    if nested and flat and nested != flat:
        wrong = WrongField("conflict", f"differs from order.customer.{name}: send one of them, or the same")
        reader.fail(f"order.{name}", wrong)
    found: str | None = nested or flat
    return found


def _cut(value: Any) -> str:
    return str(DESCRIPTION(value))[:MOST_DESCRIPTION]


def _day(value: Any) -> str:
    if not isinstance(value, str):
        raise wrong_type("a date such as 2027-01-31")
    try:
        # A time of day may follow the date, and is not used.
        return date.fromisoformat(value[:10] if _DATE.match(value) else value).isoformat()
    except ValueError:
        raise WrongField("invalid", "must be a date such as 2027-01-31") from None


_ITEM: dict[str, Check] = {
    "description": _cut,
    "name": text(0, 1000),
    "sku": text(0, 100),
    "quantity": quantity,
    "price": number,
}
_ITEM_MORE: dict[str, Check] = {"isPreOrder": _flag, "releaseDate": _day}


_CONSUMER = ("firstName", "lastName", "email", "phoneNumber")
SHAPE = shape(
    *(
        "merchantId",
        "merchantReference",
        "callbackUrl",
        "capture",
        "checkoutFlow",
        "integrationType",
        "display",
    ),
    *("description", "redirectConfirmUrl", "redirectCancelUrl", "additionalData", "metadata"),
    order=shape(
        *("amount", "currency", "shippingAmount", "taxAmount", "merchantFeeForPaymentPlan"),
        *("merchantReference", *_CONSUMER),
        customer=shape(*_CONSUMER, *ADDRESS_SHAPES["customer"]),
        address=shape(*ADDRESS_SHAPES["address"]),
        billingAddress=shape(*ADDRESS_SHAPES["billingAddress"]),
        lineItems=Shape(frozenset((*_ITEM, *_ITEM_MORE))),
    ),
)


def _items(reader: Reader, order: dict[str, Any]) -> list[dict[str, Any]] | None:
    values = reader.read(order, "order.lineItems", as_items, prefill=True)
    if values is None:
        return None
    items = []
    for index, value in enumerate(values):
        path = f"order.lineItems[{index}]"
        if not isinstance(value, dict):
            reader.fail(path, wrong_type("an object"), prefill=True)
            continue
        item = {
            name: reader.read(value, f"{path}.{name}", check, prefill=True) for name, check in _ITEM.items()
        }
        more = {
            name: reader.read(value, f"{path}.{name}", check, prefill=True)
            for name, check in _ITEM_MORE.items()
        }
        items.append({**item, **{name: found for name, found in more.items() if found is not None}})
    return items
