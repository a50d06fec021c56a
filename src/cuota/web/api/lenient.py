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
