"""The address of an SDK order: nested `address`, flat `billingAddress`, or the customer's own fields."""

from __future__ import annotations

import re
from typing import Any

from cuota.core.consumer import STATES
from cuota.web.fields import Check, Reader, WrongField, as_object, text, wrong_type

# The document's names, and what the layouts call them.
_PARTS = {
    "addressLine1": ("line1", "line1", "address1"),
    "addressLine2": ("line2", "address2", "address2"),
    "city": ("city", "city", "city"),
    "state": ("state", "state", "state"),
    "postcode": ("postalCode", "postalCode", "postalCode"),
}
# What is read of each place. Flat and nested names of the second line are both read where the order has it flat.
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
    """The order's address in the document's names; None where none is given."""
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
            # An empty text is how a form says "not given".
            {key: entry for key, entry in value.items() if entry != ""},
            f"{path}.{name}",
            _CHECKS.get(name, _TEXT),
            required=name in (required or set()),
            prefill=True,
        )
        for name in names
    }
