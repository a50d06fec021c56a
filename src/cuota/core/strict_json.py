"""Reading JSON strictly: exact decimals, no duplicate keys, no NaN, no deep nesting, no character that cannot be kept."""

from __future__ import annotations

import json
import re
from decimal import Decimal, InvalidOperation
from typing import Any

DEEPEST = 32
# A NUL, or half a surrogate pair: JSON, but no text that a database can keep.
UNSTORABLE = re.compile("[\0\ud800-\udfff]")


class BadJson(ValueError):  # noqa: N818 - named as the fact it is
    """Not JSON as the service reads it; the text says where and why."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        seen: set[str] = set()
        double = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        # A key that is no name may be a value in the wrong place, a card's number even: it is not repeated.
        named = f"the key {double[:50]!r}" if double.isidentifier() else "a key"
        raise BadJson(f"{named} stands twice in one object")
    return value


def _whole(text: str) -> int | Decimal:
    # Beyond 18 digits nothing is an amount; Decimal reads any length, int() refuses more than 4,300 digits.
    return int(text) if len(text) <= 19 else Decimal(text)


def _decimal(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:
        raise BadJson("a number is out of range") from None


def _constant(name: str) -> None:
    raise BadJson(f"{name} is not JSON")


_decoder = json.JSONDecoder(
    object_pairs_hook=_object, parse_float=_decimal, parse_int=_whole, parse_constant=_constant, strict=True
)


def read_json(body: bytes) -> Any:
    """Decode UTF-8 JSON: numbers as int or Decimal, exactly as written. Raises BadJson."""
    try:
        text = body.decode("utf-8")
    except UnicodeDecodeError as problem:
        raise BadJson(f"not UTF-8 at byte {problem.start}") from None
    if text.startswith("\ufeff"):
        raise BadJson("it begins with a byte order mark; send plain UTF-8")
    # Few bodies have that many brackets or any escape: only those are looked at again.
    if text.count("[") + text.count("{") > DEEPEST:
        _refuse_deep(text)
    try:
        value = _decoder.decode(text)
    except json.JSONDecodeError as problem:
        raise BadJson(f"{problem.msg} at character {problem.pos}") from None
    except RecursionError:
        raise BadJson(f"nested deeper than {DEEPEST}") from None
    if "\\u" in text:
        _refuse_unstorable(value)
    return value


def _refuse_deep(text: str) -> None:
    depth = 0
    inside = escaped = False
    for char in text:
        if inside:
            if escaped:
                escaped = False
            elif char == "\\":
                escaped = True
            elif char == '"':
                inside = False
        elif char == '"':
            inside = True
        elif char in "[{":
            depth += 1
            if depth > DEEPEST:
                raise BadJson(f"nested deeper than {DEEPEST}")
        elif char in "]}":
            depth -= 1


def _refuse_unstorable(value: Any) -> None:
    """Look for UNSTORABLE in every text."""
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
