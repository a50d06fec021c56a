"""Converts money: the shop calculates in integer cents, and sends and shows exact decimal text. It never uses floats."""

from __future__ import annotations

import re
from decimal import Decimal

# A comma separates thousands only before exactly three digits.
_TYPED = re.compile(r"\$? *([0-9]{1,9}|[0-9]{1,3}(?:,[0-9]{3}){1,2})(?:\.([0-9]{1,2}))?", re.ASCII)


def to_json(cents: int) -> str:
    """Format cents for the API: 12345 becomes "123.45". Raises ValueError for a negative amount."""
    if cents < 0:
        raise ValueError("the API does not accept negative amounts")
    whole, rest = divmod(cents, 100)
    return f"{whole}.{rest:02d}"


def from_json(value: object) -> int:
    """Read an amount from an answer, in cents. The JSON must be parsed with `parse_float=Decimal`. None becomes 0."""
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise TypeError(f"not an amount: {value!r}")
    cents = Decimal(value) * 100
    if cents != int(cents):
        raise ValueError(f"an amount with a fraction of a cent: {value}")
    return int(cents)


def from_form(text: str) -> int:
    """Read an amount that a person typed, in cents: "12", "12.5" or "$12.50". Raises ValueError for other text."""
    match = _TYPED.fullmatch(text.strip())
    if match is None:
        raise ValueError("Write the amount as dollars and cents, like 12.50.")
    whole, rest = match.groups()
    return int(whole.replace(",", "")) * 100 + int((rest or "").ljust(2, "0"))


def show(cents: int) -> str:
    """Format cents for a page: $1,234.50, or -$7.38."""
    whole, rest = divmod(abs(cents), 100)
    return f"{'-' if cents < 0 else ''}${whole:,}.{rest:02d}"


def in_four(cents: int) -> tuple[int, int, int, int]:
    """Split an amount into four payments as the provider does: the remaining cents go to the first payments."""
    each, over = divmod(cents, 4)
    first, second, third, fourth = (each + (1 if place < over else 0) for place in range(4))
    return first, second, third, fourth


def offer(cents: int) -> str:
    """Return the text about four payments. If they differ, it names the highest, so that it never promises too little."""
    first, *_, last = in_four(cents)
    return f"or 4 payments of {'' if first == last else 'up to '}{show(first)}"
