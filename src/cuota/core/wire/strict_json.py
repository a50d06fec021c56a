"""Reads JSON strictly: exact decimals, no duplicate keys, no NaN, no deep nesting, no characters that cannot be stored."""

from __future__ import annotations

import json
import re
from decimal import Decimal, InvalidOperation
from typing import Any

DEEPEST = 32
# The limit on values. Each member of an object or list is a value; a thousand line items with all fields have 8,000.
MOST_VALUES = 10_000
# NUL, and half a surrogate pair. JSON allows them, but the database cannot store them.
UNSTORABLE = re.compile("[\0\ud800-\udfff]")
# The next bracket or comma outside of strings. A string that never ends matches up to the end of the body. Otherwise the search
# would begin again at each escaped quote in it, and take quadratic time.
_MARK = re.compile(r'(?:[^"\[\]{},]++|"(?:[^"\\]++|\\.?)*+"?)*+([\[\]{},]|\Z)', re.DOTALL)


class BadJson(ValueError):
    """The text is not JSON that the service accepts. The message says where and why."""


class TooMany(BadJson):
    """The JSON has more values than any request needs."""

    def __init__(self) -> None:
        super().__init__(f"it holds more than {MOST_VALUES:,} values")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        seen: set[str] = set()
        double = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        # A key that does not look like a name may be a value in the wrong place, even a card number. So the error does
        # not repeat it.
        named = f"the key {double[:50]!r}" if double.isidentifier() else "a key"
        raise BadJson(f"{named} appears twice in one object")
    return value


def whole(text: str) -> int | Decimal:
    """Read a JSON integer."""
    # No amount has more than 18 digits. Decimal reads any length, while int() refuses more than 4,300 digits.
    return int(text) if len(text) <= 19 else Decimal(text)


def decimal(text: str) -> Decimal:
    """Read a JSON number with a decimal point or an exponent. Raises BadJson."""
    try:
        return Decimal(text)
    except InvalidOperation:
        raise BadJson("a number is out of range") from None


def _constant(name: str) -> None:
    raise BadJson(f"{name} is not JSON")


_decoder = json.JSONDecoder(
    object_pairs_hook=_object, parse_float=decimal, parse_int=whole, parse_constant=_constant, strict=True
)


def read_json(body: bytes) -> Any:
    """Decode UTF-8 JSON: numbers as int or Decimal, exactly as written. Raises BadJson."""
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as problem:
        raise BadJson(f"not UTF-8 at byte {problem.start}") from None
    if text.startswith("\ufeff"):
        raise BadJson("it begins with a byte order mark; send plain UTF-8")
    # Only the few bodies with many brackets or commas, or with escapes, need a second check.
    brackets = text.count("[") + text.count("{")
    if brackets > DEEPEST or brackets + text.count(",") > MOST_VALUES:
        _refuse_large(text)
    try:
        value = _decoder.decode(text)
    except json.JSONDecodeError as problem:
        raise BadJson(f"{problem.msg} at character {problem.pos}") from None
    except RecursionError:
        raise BadJson(f"nested deeper than {DEEPEST}") from None
    if "\\u" in text:
        _refuse_unstorable(value)
    return value


def _refuse_large(text: str) -> None:
    """Refuse nesting that is too deep, and too many values. Stops at the first of these, or at the end of the text."""
    depth = values = 0
    for found in _MARK.finditer(text):
        mark = found[1]
        if not mark:
            return
        if mark in "[{":
            depth += 1
        elif mark in "]}":
            depth -= 1
        values += mark in "[{,"
        if depth > DEEPEST:
            raise BadJson(f"nested deeper than {DEEPEST}")
        if values > MOST_VALUES:
            raise TooMany
        if depth < 0:
            # This is not JSON. The decoder will say where, and stop there.
            return


def _refuse_unstorable(value: Any) -> None:
    """Raise BadJson if a text contains a character in UNSTORABLE."""
    if isinstance(value, str):
        if UNSTORABLE.search(value):
            raise BadJson("a text holds a NUL or half a surrogate pair")
    elif isinstance(value, dict):
        for key, item in value.items():
            _refuse_unstorable(key)
            _refuse_unstorable(item)
    elif isinstance(value, list):
        for item in value:
            _refuse_unstorable(item)
