"""The lenient profile: what storefronts pass on as the shopper typed it, put into the form that the rules ask for."""

from __future__ import annotations

import re
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from typing import Any

from cuota.core.consumer import STATES, typed_number

_GROUPED = re.compile(r"-?[0-9]{1,3}(,[0-9]{3})+(\.[0-9]+)?", re.ASCII)
_CODES = {name.casefold(): code for code, name in STATES.items()}
_CENT = Decimal("0.01")
# Sums of binary floats miss a cent's fraction by far less than this.
_NOISE = Decimal("0.000001")


def normalised(body: dict[str, Any]) -> dict[str, Any]:
    """A copy with prefill data and side amounts put right; amount, merchant and merchantReference stay as they are."""
    copy = dict(body)
    for name in ("taxAmount", "shippingAmount"):
        copy[name] = _amount(body.get(name))
    for name in ("billing", "shipping"):
        copy[name] = _address(body.get(name))
    consumer = body.get("consumer")
    if isinstance(consumer, dict):
        copy["consumer"] = _blank_is_absent({**consumer, "phoneNumber": _phone(consumer.get("phoneNumber"))})
    items = body.get("items")
    if isinstance(items, list):
        copy["items"] = [_item(item) for item in items]
    return copy


def normalised_sdk(order: dict[str, Any]) -> dict[str, Any]:
    """The same for the order of a signed request, in both of its layouts."""
    copy = dict(order)
    for name in ("taxAmount", "shippingAmount"):
        copy[name] = _amount(order.get(name))
    for name in ("customer", "address", "billingAddress"):
        place = order.get(name)
        if isinstance(place, dict):
            state, postcode = _state(place.get("state")), _postcode(place.get("postalCode"))
            copy[name] = _blank_is_absent({**place, "state": state, "postalCode": postcode})
    address = copy.get("address")
    if isinstance(address, dict) and not any(value is not None for value in address.values()):
        copy["address"] = None
    items = order.get("lineItems")
    if isinstance(items, list):
        copy["lineItems"] = [_item(item) for item in items]
    return copy


def normalised_smi(body: dict[str, Any]) -> dict[str, Any]:
    """The same for what a shop system sends."""
    copy = dict(body)
    shopper, order = body.get("shopper"), body.get("order")
    if isinstance(shopper, dict):
        more = {
            "phone": _phone(shopper.get("phone")),
            "billing_address": _smi_address(shopper.get("billing_address")),
        }
        copy["shopper"] = _blank_is_absent({**shopper, **more})
    if isinstance(order, dict):
        shipping, items = order.get("shipping"), order.get("items")
        if isinstance(shipping, dict):
            more = {
                "amount": _amount(shipping.get("amount")),
                "address": _smi_address(shipping.get("address")),
            }
            shipping = {**shipping, **more}
        else:
            shipping = _amount(shipping)
        if isinstance(items, list):
            items = [_item(item) for item in items]
        copy["order"] = {**order, "shipping": shipping, "items": items}
    return copy


def _smi_address(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    place = {**value, "state": _state(value.get("state")), "postal_code": _postcode(value.get("postal_code"))}
    kept = _blank_is_absent(place)
    return kept if any(entry is not None for entry in kept.values()) else None


def _blank_is_absent(value: dict[str, Any]) -> dict[str, Any]:
    return {
        key: None if isinstance(entry, str) and not entry.strip() else entry for key, entry in value.items()
    }


def _phone(value: Any) -> Any:
    return typed_number(value) if isinstance(value, str) else value


def _address(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    fields = ("addressLine1", "addressLine2", "city", "state", "postcode")
    if all(value.get(name) is None or value.get(name) == "" for name in fields):
        return None
    return {**value, "state": _state(value.get("state")), "postcode": _postcode(value.get("postcode"))}


def _state(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    state = value.strip().removeprefix("US-").removeprefix("us-")
    return _CODES.get(state.casefold(), state.upper() if len(state) == 2 else state)


def _postcode(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    found = re.fullmatch(r"\s*([0-9]{5})(?:-?[0-9]{4})?\s*", value, re.ASCII)
    return found[1] if found else value


def _item(value: Any) -> Any:
    return {**value, "price": _amount(value.get("price"))} if isinstance(value, dict) else value


def _amount(value: Any) -> Any:
    if isinstance(value, str):
        if _GROUPED.fullmatch(value.strip()):
            return value.strip().replace(",", "")
        value = value.strip()
    try:
        exact = Decimal(value) if isinstance(value, str | Decimal) else None
        if exact is not None and exact.is_finite() and abs(exact) < 10**16:
            cents = exact.quantize(_CENT, ROUND_HALF_UP)
            return cents if cents != exact and abs(cents - exact) < _NOISE else value
    except InvalidOperation:
        return value
    return value
