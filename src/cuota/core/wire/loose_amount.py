"""Reads amounts as shop plugins send them: with grouping, or with the rounding noise of binary floats."""

from __future__ import annotations

import re
from decimal import ROUND_HALF_UP, Context, Decimal

LONGEST = 64
_GROUPED = re.compile(r"-?[1-9][0-9]{0,2}(?:,[0-9]{3})+(?:\.[0-9]+)?", re.ASCII)
_PLAIN = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?", re.ASCII)
_CENT = Decimal("0.01")
# A value this close to a whole cent is read as that cent. The rounding noise of binary floats is much smaller.
NOISE = Decimal("0.000001")
# No amount has more digits before the decimal point. For more digits, quantize would exceed the context's precision.
_MOST_WHOLE_DIGITS = 16
_CONTEXT = Context(prec=28, rounding=ROUND_HALF_UP)


def plain_amount(value: object) -> object:
    """Return the amount without grouping and rounding noise. Return any other value unchanged.

    `"1,234.50"` becomes `"1234.50"`, and `12.649999999999999` becomes `12.65`. The strict reader checks the result afterward.
    """
    if isinstance(value, str):
        if len(value) > LONGEST:
            return value
        if _GROUPED.fullmatch(value):
            value = value.replace(",", "")
        if not _PLAIN.fullmatch(value):
            return value
        exact = Decimal(value)
    elif isinstance(value, Decimal) and value.is_finite():
        exact = value
    else:
        return value
    if exact and exact.adjusted() >= _MOST_WHOLE_DIGITS:
        return value
    # Noise around zero can give a negative zero. `plus` turns it into zero.
    cents = _CONTEXT.plus(exact.quantize(_CENT, context=_CONTEXT))
    # A comparison is used because, unlike a subtraction, it never rounds decimals with many digits.
    noisy = cents != exact and cents - NOISE <= exact <= cents + NOISE
    return cents if noisy else value
