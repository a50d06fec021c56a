"""JSON read strictly but for one member: what is wrong inside it is no error of the whole.

What a merchant says of its customer comes from its own reckoning: a NaN, a key that stands twice, half a character.
None of it may cost a sale.
"""

from __future__ import annotations

import json
from typing import Any

from cuota.core.wire.strict_json import DEEPEST, UNSTORABLE, BadJson, TooMany, decimal, read_json, whole


class _Pairs(list[tuple[str, Any]]):
    """An object as it was written, with what stands twice."""


class _NoNumber(str):
    """A number that the strict reader refuses, as it was written."""

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
    """As `read_json`, whatever the members of this name hold. Raises BadJson.

    In them a number that is none is the text that was sent, a key that stands twice has a list, which is no value of
    anything, and a character that cannot be kept is U+FFFD. Objects and lists inside them are empty.
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
    """As strictly as ever outside of what is spared."""
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
