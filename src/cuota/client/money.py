"""Writes amounts for requests as exact decimals.

A float cannot hold money exactly, and an int could mean dollars or cents. Both are refused.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal

_PLAIN = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?", re.ASCII)
_MOST_DIGITS = 18
_FLOAT = (
    "{where} is the float {value!r}, and a binary float cannot hold money exactly. "
    'Write "12.50", Decimal("12.50") or cents(1250).'
)
_INT = "{where} is the int {value!r}: is that dollars or cents? Write cents({value}), or Decimal({value})."


def cents(number: int) -> Decimal:
    """Return an amount from a number of cents: `cents(1250)` is 12.50. Raises TypeError for anything but an int."""
    if isinstance(number, bool) or not isinstance(number, int):
        raise TypeError(f"cents() takes a whole number of cents, not {number!r}.")
    return Decimal(number).scaleb(-2)


def amount_text(value: Decimal | str, where: str = "amount") -> str:
    """Write an amount as the service expects it, such as `12.50`. `where` names the field in errors.

    Raises TypeError for a float or an int, and ValueError for a value that is not an amount.
    """
    if isinstance(value, float):
        raise TypeError(_FLOAT.format(where=where, value=value))
    if isinstance(value, int) and not isinstance(value, bool):
        raise TypeError(_INT.format(where=where, value=value))
    if not isinstance(value, str | Decimal):
        raise TypeError(f'{where} is {value!r}: write "12.50", Decimal("12.50") or cents(1250).')
    if isinstance(value, str):
        if len(value) > 64 or not _PLAIN.fullmatch(value):
            raise ValueError(f"{where} is {value!r}: write a plain decimal such as 12.50.")
        value = Decimal(value)
    if not value.is_finite():
        raise ValueError(f"{where} is {value}: that is not an amount.")
    if value.adjusted() >= _MOST_DIGITS:
        raise ValueError(f"{where} has more than {_MOST_DIGITS} digits.")
    whole = _in_cents(value, where)
    sign, (units, rest) = "-" if whole < 0 else "", divmod(abs(whole), 100)
    return f"{sign}{units}.{rest:02d}"


def _in_cents(value: Decimal, where: str) -> int:
    """Convert to cents from the digits. Decimal arithmetic could round, depending on the caller's decimal context."""
    sign, digits, exponent = value.as_tuple()
    assert isinstance(exponent, int)
    written = "".join(map(str, digits))
    significant = written.rstrip("0") or "0"
    shift = exponent + len(written) - len(significant) + 2
    if significant == "0":
        return 0
    if shift < 0:
        raise ValueError(f"{where} is {value}: an amount has at most two decimal places.")
    whole = int(significant) * int(10**shift)
    return -whole if sign else whole


def json_text(value: object, where: str = "body") -> str:
    """Encode a value as JSON without spaces, with Decimals as exact numbers.

    Raises TypeError for a float at any depth. The message names its place, which starts with `where`.
    """
    if isinstance(value, float):
        raise TypeError(_FLOAT.format(where=where, value=value))
    if value is None or isinstance(value, bool | int | str):
        return json.dumps(value, ensure_ascii=False)
    if isinstance(value, Decimal):
        if not value.is_finite():
            raise ValueError(f"{where} is {value}: JSON has no such number.")
        return f"{value:f}"
    if isinstance(value, Mapping):
        parts = (f"{_name(name, where)}:{json_text(each, f'{where}.{name}')}" for name, each in value.items())
        return "{" + ",".join(parts) + "}"
    if isinstance(value, Sequence) and not isinstance(value, bytes | bytearray | memoryview):
        return "[" + ",".join(json_text(each, f"{where}[{index}]") for index, each in enumerate(value)) + "]"
    raise TypeError(f"{where} is a {type(value).__name__}, which cannot be written as JSON.")


def _name(name: object, where: str) -> str:
    if not isinstance(name, str):
        raise TypeError(f"{where} has the name {name!r}: names must be strings.")
    return json.dumps(name, ensure_ascii=False)
