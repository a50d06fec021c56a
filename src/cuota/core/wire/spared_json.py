"""Reads JSON strictly, except for one member, in which errors are tolerated.

A merchant's data about its customer may contain errors such as NaN, a repeated key, or half a character. Such errors must not
cost the merchant a sale.
"""

from __future__ import annotations

import json
from typing import Any

from cuota.core.wire.strict_json import DEEPEST, UNSTORABLE, BadJson, TooMany, decimal, read_json, whole


class _Pairs(list[tuple[str, Any]]):
    """An object with all of its members, including repeated keys."""


class _NoNumber(str):
    """The text of a number that the strict reader refuses."""

    __slots__ = ()


def _number(text: str) -> Any:
    try:
        return decimal(text)
    except BadJson:
        return _NoNumber(text)


_loose = json.JSONDecoder(
    object_pairs_hook=_Pairs, parse_float=_number, parse_int=whole, parse_constant=_NoNumber, strict=True
)


def read_sparing(body: bytes, spared: str) -> Any:
    """Read JSON like `read_json`, but tolerate errors in members of this name. Raises BadJson for other errors.

    In these members, an invalid number is read as its text, a duplicate key has an empty list as its value, and a
    character that cannot be stored becomes U+FFFD. Nested objects and lists become empty.
    """
    try:
        return read_json(body)
    except TooMany:
        raise
    except BadJson as problem:
        try:
            value = _loose.decode(body.decode("utf-8"))
        except (ValueError, RecursionError):
            raise problem from None
        return _read(value, spared, 1, problem)


def _read(value: Any, spared: str, depth: int, problem: BadJson) -> Any:
    """Check strictly everything outside the tolerated member."""
    if isinstance(value, _NoNumber) or (isinstance(value, str) and UNSTORABLE.search(value)):
        raise problem
    if isinstance(value, list) and depth > DEEPEST:
        raise problem
    if isinstance(value, _Pairs):
        read = {
            name: _spare(item) if name == spared else _read(item, spared, depth + 1, problem)
            for name, item in value
        }
        if len(read) != len(value) or any(UNSTORABLE.search(name) for name in read):
            raise problem
        return read
    return [_read(item, spared, depth + 1, problem) for item in value] if isinstance(value, list) else value


def _spare(value: Any) -> Any:
    if not isinstance(value, _Pairs):
        return _plain(value)
    read: dict[str, Any] = {}
    for written, item in value:
        name = _storable(written)
        read[name] = [] if name in read else _plain(item)
    return read


def _plain(value: Any) -> Any:
    if isinstance(value, list):
        return {} if isinstance(value, _Pairs) else []
    return _storable(value) if isinstance(value, str) else value


def _storable(text: str) -> str:
    return UNSTORABLE.sub("\ufffd", text)
