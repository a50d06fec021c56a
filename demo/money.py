"""Money in the shop: integer cents inside, exact decimal text outside, never a float."""

from __future__ import annotations

import re
from decimal import Decimal

_TYPED = re.compile(r"\$? *([0-9]{1,9})(?:\.([0-9]{1,2}))?", re.ASCII)


def to_json(cents: int) -> str:
    """Print cents as the API reads them: 12345 becomes "123.45"."""
    if cents < 0:
        raise ValueError("the API takes no negative amounts")
    whole, rest = divmod(cents, 100)
    return f"{whole}.{rest:02d}"


def from_json(value: object) -> int:
    """Cents of an amount in an answer. Read answers with `parse_float=Decimal`: null counts as nothing."""
    if value is None:
        return 0
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise TypeError(f"not an amount: {value!r}")
    cents = Decimal(value) * 100
    if cents != int(cents):
        raise ValueError(f"an amount finer than a cent: {value}")
    return int(cents)


def from_form(text: str) -> int:
    """Cents of what a person typed: "12", "12.5" or "$12.50"; ValueError otherwise."""
    match = _TYPED.fullmatch(text.strip().replace(",", ""))
    if match is None:
        raise ValueError("Write the amount as dollars and cents, like 12.50.")
    whole, rest = match.groups()
    return int(whole) * 100 + int((rest or "").ljust(2, "0"))


def show(cents: int) -> str:
    """Print cents for a person: $1,234.50."""
    whole, rest = divmod(cents, 100)
    return f"${whole:,}.{rest:02d}"


def in_four(cents: int) -> tuple[int, int, int, int]:
    """Split as the provider splits: what does not divide by four goes, a cent each, on the first payments."""
    each, over = divmod(cents, 4)
    first, second, third, fourth = (each + (1 if place < over else 0) for place in range(4))
    return first, second, third, fourth


def offer(cents: int) -> str:
    """Say the price in four without ever saying too little."""
    first, *_, last = in_four(cents)
    return f"or 4 payments of {'' if first == last else 'up to '}{show(first)}"
