"""The lenient profile: normalizes a body before its fields are checked.

Shop plugins pass on text as the shopper typed it, such as "Florida" for a state or "1,234.50" for an amount. These
functions convert such values to the form that the field rules require. A value that they cannot convert stays unchanged.
"""

from __future__ import annotations

import re
from typing import Any

from cuota.core.consumer import STATES, typed_number
from cuota.core.wire.loose_amount import plain_amount

_CODES = {name.casefold(): code for code, name in STATES.items()}


def normalised(body: dict[str, Any]) -> dict[str, Any]:
    """Normalize the amounts and prefill data of `POST /order` in a copy. Other fields stay unchanged."""
    copy = {**body, **_amounts(body), **_metadata(body)}
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
    """Normalize the `order` of a signed request (SDK or gateway), in the nested and the flat layout."""
    copy = {**order, **_amounts(order)}
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


def normalised_signed(body: dict[str, Any]) -> dict[str, Any]:
    """Normalize the fields of a signed request that are outside `order`."""
    return {**body, **_metadata(body)}


def normalised_smi(body: dict[str, Any]) -> dict[str, Any]:
    """Normalize the body of `POST /checkouts`, which shop systems (SMI) send."""
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
                "amount": _side_amount(shipping.get("amount")),
                "address": _smi_address(shipping.get("address")),
            }
            shipping = {**shipping, **more}
        else:
            shipping = _side_amount(shipping)
        if isinstance(items, list):
            items = [_item(item) for item in items]
        amount = plain_amount(order.get("amount"))
        copy["order"] = {**order, "amount": amount, "shipping": shipping, "items": items}
    return copy


def _smi_address(value: Any) -> Any:
    if not isinstance(value, dict):
        return value
    place = {**value, "state": _state(value.get("state")), "postal_code": _postcode(value.get("postal_code"))}
    place = _blank_is_absent(place)
    return place if any(entry is not None for entry in place.values()) else None


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
    return {**value, "price": _side_amount(value.get("price"))} if isinstance(value, dict) else value


def _amounts(source: dict[str, Any]) -> dict[str, Any]:
    exact = {name: plain_amount(source.get(name)) for name in ("amount", "merchantFeeForPaymentPlan")}
    return {**exact, **{name: _side_amount(source.get(name)) for name in ("taxAmount", "shippingAmount")}}


def _side_amount(value: Any) -> Any:
    """Normalize an amount that is only informative. Spaces around it are removed first."""
    return plain_amount(value.strip() if isinstance(value, str) else value)


def _metadata(body: dict[str, Any]) -> dict[str, Any]:
    """Turn an empty list into an empty map: PHP encodes an empty map as an empty list."""
    return {"metadata": {}} if body.get("metadata") == [] else {}
