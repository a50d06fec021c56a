"""Whole cents, for the check of a settlement."""

from __future__ import annotations

from decimal import Decimal

WHOLE = 10_000
"""100 % in hundredths of a percent."""


def cents_of(value: object) -> int:
    """Return an amount as cents. Raises ValueError for a fraction of a cent."""
    number = Decimal(str(value)) * 100
    if number != int(number):
        raise ValueError(f"{value} is not an amount in whole cents.")
    return int(number)


def share(whole: int, part: int, total: int) -> int:
    """Return `whole * part / total`, rounded half up."""
    return (2 * whole * part + total) // (2 * total)
