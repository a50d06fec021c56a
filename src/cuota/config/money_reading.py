"""Functions that read amounts of money in settings. Each raises ValueError if the text is not valid (`config/reading.py`)."""

from __future__ import annotations

from cuota.core.money import BadAmount, cents_of


def dollars(text: str) -> int:
    """Read an amount in dollars, such as 500.00, and return it in cents."""
    try:
        cents = cents_of(text)
    except BadAmount:
        cents = -1
    if cents < 0:
        raise ValueError("must be an amount such as 500.00")
    return cents
