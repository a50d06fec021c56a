"""Money is exact integer cents. Nothing here, or anywhere on a money path, is a binary float."""

from __future__ import annotations

import re
from decimal import Context, Decimal, Inexact

# ISO 4217. The currency of a new merchant, and the only one that the sandbox's card rail takes.
CURRENCY = "USD"
MAX_DIGITS = 18
MAX_DECIMALS = 2
# More digits than any amount has: what is cut off beyond them is an error, unless it is zeros.
_EXACT = Context(prec=MAX_DIGITS + 2 * MAX_DECIMALS, traps=[Inexact])
_PLAIN = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?", re.ASCII)


class BadAmount(ValueError):
    """Not an amount; the text says why in the words of the field rules."""


def decimal_of(value: object) -> Decimal:
    """Read a JSON value (int, Decimal, or a string holding a plain decimal) as a decimal, exactly."""
    if isinstance(value, str):
        if len(value) > 64 or not _PLAIN.fullmatch(value):
            raise BadAmount("must be a number, or a string holding a plain decimal such as 123.45")
        return Decimal(value)
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise BadAmount("must be a number, or a string holding a plain decimal such as 123.45")
    return Decimal(value)


def cents_of(value: object) -> int:
    """Read a JSON value as integer cents; raise BadAmount beyond 18 digits or 2 decimal places *in value*.

    `112.0000` has two decimal places in value and is fine; `1.005` is not. The sign is kept.
    """
    number = decimal_of(value)
    if not number:
        return 0
    if not -MAX_DECIMALS <= number.adjusted() < MAX_DIGITS:
        raise BadAmount("must have at most 18 digits, of which at most 2 decimal places")
    try:
        cents = number.scaleb(MAX_DECIMALS, _EXACT).to_integral_exact(context=_EXACT)
    except Inexact:
        raise BadAmount("must have at most 2 decimal places") from None
    whole = int(cents)
    # Trailing zeros are not digits that were meant.
    if abs(whole) >= 10**MAX_DIGITS and len(str(abs(whole)).rstrip("0")) > MAX_DIGITS:
        raise BadAmount("must have at most 18 digits in total")
    return whole


def decimal_from(cents: int) -> Decimal:
    """The decimal that JSON answers print: always two places, exact."""
    return Decimal(cents).scaleb(-MAX_DECIMALS)


def text_of(cents: int) -> str:
    """`12345` as `123.45`: plain, no symbol, no grouping."""
    sign = "-" if cents < 0 else ""
    whole, rest = divmod(abs(cents), 100)
    return f"{sign}{whole}.{rest:02d}"


def shown(cents: int, currency: str = "USD") -> str:
    """As a person reads it: `$1,234.50`; other currencies by their code."""
    sign = "-" if cents < 0 else ""
    whole, rest = divmod(abs(cents), 100)
    symbol = "$" if currency == "USD" else f"{currency} "
    return f"{sign}{symbol}{whole:,}.{rest:02d}"


def split(total: int, parts: int) -> list[int]:
    """Spread cents over equal parts; the first `total % parts` parts are one cent larger. The sum is exact."""
    assert total >= 0
    assert parts > 0
    each, extra = divmod(total, parts)
    return [each + 1 if index < extra else each for index in range(parts)]


def share(whole: int, part: int, total: int) -> int:
    """`whole * part / total` in cents, rounded half up, exact at both ends; used for pro-rata fees."""
    assert 0 <= part <= total
    assert total > 0
    return (2 * whole * part + total) // (2 * total)
