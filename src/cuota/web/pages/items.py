"""What the pages show of an order's items. The checkout and the merchant's dashboard show the same numbers."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

_TOO_MUCH = 10**14


def _quantity_of(item: Mapping[str, Any]) -> Decimal:
    """Return the quantity of an item: 1 if the merchant sent none. A quantity of 0 stays 0."""
    quantity = item.get("quantity")
    return Decimal(1 if quantity is None else quantity)


def quantity_text(item: Mapping[str, Any]) -> str:
    """Return the quantity of an item without needless zeros: a shop that sends 1.0 means one."""
    return f"{_quantity_of(item).normalize() + 0:f}"


def line_cents(item: Mapping[str, Any]) -> int | None:
    """Return the price of an item times its quantity, rounded half up to cents; None without a price that can be shown."""
    if item.get("price") is None:
        return None
    exact = Decimal(item["price"]) * _quantity_of(item)
    if abs(exact) >= _TOO_MUCH:
        return None
    return int((exact * 100).to_integral_value(ROUND_HALF_UP))
