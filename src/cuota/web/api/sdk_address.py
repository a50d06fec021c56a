"""Reads the address in the order of a signed request (SDK or gateway).

The address may be in the nested layout (`order.address`), in the flat layout (`order.billingAddress`), or in the fields of
`order.customer`, which are used only if the other two are absent.
"""

from __future__ import annotations

import re
from typing import Any

from cuota.core.consumer import STATES
from cuota.web.fields import Check, Reader, WrongField, as_object, text, wrong_type

# Each name in the order's document, with its names in `address`, `billingAddress` and `customer`.
_PARTS = {
    "addressLine1": ("line1", "line1", "address1"),
    "addressLine2": ("line2", "address2", "address2"),
    "city": ("city", "city", "city"),
    "state": ("state", "state", "state"),
    "postcode": ("postalCode", "postalCode", "postalCode"),
}
# The field names that are read in each object. `billingAddress` may use both its own names and those of `address`.
ADDRESS_SHAPES = {
    "address": (*(nested for nested, _, _ in _PARTS.values()), "country"),
    "billingAddress": (*(name for nested, flat, _ in _PARTS.values() for name in (nested, flat)), "country"),
    "customer": (*(own for _, _, own in _PARTS.values()), "country"),
}
_REQUIRED = {"line1", "city", "state", "postalCode", "country"}


def _state(value: Any) -> str:
    if not isinstance(value, str):
        raise wrong_type("a string")
    code = value.strip().upper().removeprefix("US-")
    if code not in STATES:
        raise WrongField("invalid", "must be the two letters of a US state, such as FL")
    return code


def _postal_code(value: Any) -> str:
    if not isinstance(value, str):
        raise wrong_type("a string of five digits")
    if not re.fullmatch(r"[0-9]{5}", value, re.ASCII):
        raise WrongField("invalid", "must have exactly five digits")
    return value


def _country(value: Any) -> str:
    if not isinstance(value, str):
        raise wrong_type("a string")
    if value.upper() != "US":
        raise WrongField("invalid", "must be US")
    return "US"


_CHECKS: dict[str, Check] = {"state": _state, "postalCode": _postal_code, "country": _country}
_TEXT = text(0, 250)


def read_address_of(reader: Reader, order: dict[str, Any]) -> dict[str, Any] | None:
    """Return the order's address under the document's names, or None if the order has none.

    The reader gets an error if `address` and `billingAddress` have different values.
    """
    nested = _layout(reader, order, "order.address", required=_REQUIRED)
    flat = _layout(reader, order, "order.billingAddress")
    customer = order.get("customer")
    own = _fields(reader, customer, "order.customer") if isinstance(customer, dict) else {}
    found: dict[str, Any] = {}
    for name, (in_nested, in_flat, _) in _PARTS.items():
        first, second = nested.get(in_nested), flat.get(in_flat) or flat.get(in_nested)
        if first and second and first != second:
            wrong = WrongField("conflict", f"differs from order.address.{in_nested}: send one of them")
            reader.fail(f"order.billingAddress.{in_flat}", wrong)
        found[name] = first or second
    if not any(found.values()):
        found = {name: own.get(in_customer) for name, (_, _, in_customer) in _PARTS.items()}
    return {name: value or None for name, value in found.items()} if any(found.values()) else None


def _layout(
    reader: Reader, order: dict[str, Any], path: str, required: set[str] | None = None
) -> dict[str, Any]:
    value = reader.read(order, path, as_object, prefill=True)
    return {} if value is None else _fields(reader, value, path, required or set())


def _fields(
    reader: Reader, value: dict[str, Any], path: str, required: set[str] | None = None
) -> dict[str, Any]:
    names = {"line1", "line2", "address1", "address2", "city", "state", "postalCode", "country"}
    return {
        name: reader.read(
            # A form sends an empty text for a field that is not filled in.
            {key: entry for key, entry in value.items() if entry != ""},
            f"{path}.{name}",
            _CHECKS.get(name, _TEXT),
            required=name in (required or set()),
            prefill=True,
        )
        for name in names
    }
