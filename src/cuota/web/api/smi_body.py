"""Reads the body of `POST /checkouts`, which shop systems (SMI) send. One refusal lists all failures.

The names are in snake_case. The field rules and the order's record are those of `POST /order`.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Any

from cuota.core.checkout.start import Integration, Start
from cuota.core.merchant import BodyProfile, Merchant
from cuota.flows.order.create_order import OrderRequest
from cuota.web.api import lenient
from cuota.web.api.additional import read_additional
from cuota.web.api.order_body import (
    ADDRESS,
    AMOUNT,
    AMOUNT_OR_ZERO,
    ITEM,
    REFERENCE,
    Sums,
    as_items,
    consumer_rules,
    read_currency,
    web_address,
)
from cuota.web.api.profile import read_by_profile
from cuota.web.api.unknown import Shape, shape, unknown_fields
from cuota.web.fields import Reader, WrongField, as_object, wrong_type

# The names in the order's record, with the names that shop systems use.
_PERSON = {"phoneNumber": "phone", "givenNames": "first_name", "surname": "last_name", "email": "email"}
_PLACE = {
    "addressLine1": "line1",
    "addressLine2": "line2",
    "city": "city",
    "state": "state",
    "postcode": "postal_code",
}


_ADDRESS = Shape(frozenset((*_PLACE.values(), "country")))
SHAPE = shape(
    shopper=shape(*_PERSON.values(), "additional_data", billing_address=_ADDRESS),
    order=shape(
        *("reference", "amount", "currency"),
        items=Shape(frozenset(ITEM)),
        shipping=shape("amount", address=_ADDRESS),
    ),
    config=shape("redirect_uri"),
)


@dataclass(frozen=True, slots=True)
class SmiRequest:
    """A valid request: the order, and how its checkout starts."""

    order: OrderRequest
    start: Start


def read_smi_body(body: dict[str, Any], merchant: Merchant, today: date, *, https_only: bool) -> SmiRequest:
    """Read the body. Raises Refused with all failures.

    `today` is the date to check `additional_data` against. `https_only`: the merchant's address must be an https address.
    """

    def read(profile: BodyProfile) -> SmiRequest:
        return _read(body, merchant, today, forgiving=profile is BodyProfile.LENIENT, https_only=https_only)

    checkout = read_by_profile(merchant, read)
    checkout.order.warnings.extend(unknown_fields(body, SHAPE))
    return checkout


def _read(
    body: dict[str, Any], merchant: Merchant, today: date, *, forgiving: bool, https_only: bool
) -> SmiRequest:
    reader = Reader(lenient=forgiving)
    if forgiving:
        body = lenient.normalised_smi(body)
    shopper = reader.read(body, "shopper", as_object, prefill=True) or {}
    order = reader.read(body, "order", as_object, required=True) or {}
    config = reader.read(body, "config", as_object, required=True) or {}
    amount = reader.read(order, "order.amount", AMOUNT, required=True)
    read_currency(reader, order, merchant, "order.currency", required=True)
    own = reader.read(order, "order.reference", REFERENCE, required=True)
    shipping_amount, shipping = _shipping(reader, order, amount)
    back = reader.read(config, "config.redirect_uri", web_address(https_only=https_only), required=True)
    document = {
        "consumer": _consumer(reader, shopper),
        "billing": _address(reader, shopper, "shopper.billing_address"),
        "shipping": shipping,
        "description": None,
        "items": _items(reader, order),
        # There is only one address. Its query parameter `result` says how the checkout ended.
        "merchant": {"redirectConfirmUrl": back, "redirectCancelUrl": back, "statusCallbackUrl": None},
        "merchantReference": own,
        **Sums(amount, None, shipping_amount, None).shown(),
        "metadata": {},
        "promotions": None,
    }
    warnings = reader.finish()
    field = "shopper.additional_data"
    additional = read_additional("smi", shopper.get("additional_data"), today, warnings, field)
    assert amount is not None
    return SmiRequest(
        OrderRequest(amount, 0, own, document, warnings), Start(Integration.SMI, additional=additional)
    )


def _country(value: Any) -> str:
    if not isinstance(value, str):
        raise wrong_type("a string")
    if value.upper() != "US":
        raise WrongField("invalid", "must be US")
    return "US"


def _consumer(reader: Reader, shopper: dict[str, Any]) -> dict[str, Any] | None:
    rules = consumer_rules(reader)
    found = {
        name: reader.read(shopper, f"shopper.{sent}", rules[name], prefill=True)
        for name, sent in _PERSON.items()
    }
    return found if any(value is not None for value in found.values()) else None


def _address(reader: Reader, source: dict[str, Any], path: str) -> dict[str, Any] | None:
    value = reader.read(source, path, as_object, prefill=True)
    if value is None:
        return None
    found = {}
    for name, sent in _PLACE.items():
        check, required = ADDRESS[name]
        found[name] = reader.read(value, f"{path}.{sent}", check, required=required, prefill=True)
    reader.read(value, f"{path}.country", _country, prefill=True)
    return found


def _shipping(
    reader: Reader, order: dict[str, Any], amount: int | None
) -> tuple[int | None, dict[str, Any] | None]:
    """Read the shipping amount in cents and the shipping address. The value is an amount or `{amount, address}`."""
    value = order.get("shipping")
    if isinstance(value, list | bool):
        wrong = wrong_type("an amount, or an object of amount and address")
        reader.fail("order.shipping", wrong, prefill=True)
        return None, None
    place = None
    path = "order.shipping"
    if isinstance(value, dict):
        path = "order.shipping.amount"
        place = _address(reader, value, "order.shipping.address")
        cost = reader.read(value, path, AMOUNT_OR_ZERO, prefill=True)
    else:
        cost = reader.read(order, path, AMOUNT_OR_ZERO, prefill=True)
    if cost is not None and amount is not None and cost > amount:
        wrong = WrongField("out_of_range", "must not exceed order.amount, which includes it")
        reader.fail(path, wrong, prefill=True)
        cost = None
    return cost, place


def _items(reader: Reader, order: dict[str, Any]) -> list[dict[str, Any]] | None:
    values = reader.read(order, "order.items", as_items, prefill=True)
    if values is None:
        return None
    items = []
    for index, value in enumerate(values):
        path = f"order.items[{index}]"
        if not isinstance(value, dict):
            reader.fail(path, wrong_type("an object"), prefill=True)
            continue
        items.append(
            {name: reader.read(value, f"{path}.{name}", check, prefill=True) for name, check in ITEM.items()}
        )
    return items
