"""Amounts as shop plugins send them: grouped text, and sums of binary floats that miss their cent. Exact decimals only."""

from __future__ import annotations

import re
from decimal import ROUND_HALF_UP, Context, Decimal

LONGEST = 64
_GROUPED = re.compile(r"-?[1-9][0-9]{0,2}(?:,[0-9]{3})+(?:\.[0-9]+)?", re.ASCII)
_PLAIN = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?", re.ASCII)
_CENT = Decimal("0.01")
# What lies this close to a cent is that cent. Sums of binary floats miss it by far less.
NOISE = Decimal("0.000001")
# No amount has more digits before the point. Above that, quantize would need more than the context's precision.
_MOST_WHOLE_DIGITS = 16
_CONTEXT = Context(prec=28, rounding=ROUND_HALF_UP)


def plain_amount(value: object) -> object:
    """The same amount without grouping and without float noise; anything else is answered as it came.

    `"1,234.50"` is `"1234.50"`, `12.649999999999999` is `12.65`. The strict reader then decides on what is answered.
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
    # `plus` turns a negative zero, which noise around nothing leaves, into zero.
    cents = _CONTEXT.plus(exact.quantize(_CENT, context=_CONTEXT))
    # Compared and not subtracted: a comparison of decimals never rounds, however many digits were sent.
    noisy = cents != exact and cents - NOISE <= exact <= cents + NOISE
    return cents if noisy else value
