"""Money as exact integer cents. No code that handles money uses binary floats."""

from __future__ import annotations

import re
from decimal import Context, Decimal, Inexact

# ISO 4217. The currency of a new merchant, and the only currency that the sandbox's card rail accepts.
CURRENCY = "USD"
MAX_DIGITS = 18
MAX_DECIMALS = 2
# More digits than any amount has. Dropping further digits is an error, unless they are zeros.
_EXACT = Context(prec=MAX_DIGITS + 2 * MAX_DECIMALS, traps=[Inexact])
# An amount as a person types it. A comma separates thousands only before exactly three digits: 1,50 is no amount.
_TYPED = re.compile(r"(-?)\$? *([0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(\.[0-9]{1,2})?", re.ASCII)
_PLAIN = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?", re.ASCII)


class BadAmount(ValueError):
    """The value is not an amount. The message says what the value must be."""


def decimal_of(value: object) -> Decimal:
    """Read a JSON value (int, Decimal, or a string with a plain decimal) exactly. Raises BadAmount."""
    if isinstance(value, str):
        if len(value) > 64 or not _PLAIN.fullmatch(value):
            raise BadAmount("must be a number, or a string holding a plain decimal such as 123.45")
        return Decimal(value)
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise BadAmount("must be a number, or a string holding a plain decimal such as 123.45")
    return Decimal(value)


def cents_of(value: object) -> int:
    """Read a JSON value as integer cents. Raises BadAmount for more than 18 digits or 2 decimal places *in value*.

    `112.0000` is accepted, because its further decimal places are zeros; `1.005` is not. The sign is kept.
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
    # Trailing zeros do not count as digits.
    if abs(whole) >= 10**MAX_DIGITS and len(str(abs(whole)).rstrip("0")) > MAX_DIGITS:
        raise BadAmount("must have at most 18 digits in total")
    return whole


def typed_cents(text: str) -> int:
    """Read an amount that a person typed, such as `12.50`, `$1,234.50` or `5`, as cents. Raises BadAmount."""
    match = _TYPED.fullmatch(text.strip()) if len(text) <= 64 else None
    if match is None:
        raise BadAmount("must be an amount such as 12.50 or 1,234.50")
    return cents_of(match[1] + match[2].replace(",", "") + (match[3] or ""))


def typed_payment(text: str) -> int:
    """Read an amount that a person typed, as cents. Raises BadAmount also for an amount that is not more than 0."""
    cents = typed_cents(text)
    if cents <= 0:
        raise BadAmount("must be more than 0")
    return cents


def decimal_from(cents: int) -> Decimal:
    """Return the exact decimal for JSON responses, always with two decimal places."""
    return Decimal(cents).scaleb(-MAX_DECIMALS)


def text_of(cents: int) -> str:
    """Format `12345` as `123.45`, without symbol or grouping."""
    sign = "-" if cents < 0 else ""
    whole, rest = divmod(abs(cents), 100)
    return f"{sign}{whole}.{rest:02d}"


def shown(cents: int, currency: str = "USD") -> str:
    """Format cents for a page or a message: `$1,234.50`, or with the code of another currency."""
    sign = "-" if cents < 0 else ""
    whole, rest = divmod(abs(cents), 100)
    symbol = "$" if currency == "USD" else f"{currency} "
    return f"{sign}{symbol}{whole:,}.{rest:02d}"


def split(total: int, parts: int) -> list[int]:
    """Divide cents into equal parts. The first `total % parts` parts are one cent larger, so the sum is exact."""
    assert total >= 0
    assert parts > 0
    each, extra = divmod(total, parts)
    return [each + 1 if index < extra else each for index in range(parts)]


def share(whole: int, part: int, total: int) -> int:
    """Return `whole * part / total` in cents, rounded half up, and exact if `part` is 0 or `total`. Used for pro rata fees."""
    assert 0 <= part <= total
    assert total > 0
    return (2 * whole * part + total) // (2 * total)
