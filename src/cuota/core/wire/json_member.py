"""Finds one text in a JSON object without parsing the whole object.

A body may come from anybody until its signature is verified, so reading it must be cheap whatever it contains. This code
takes linear time, and at most MOST_STEPS steps of Python.
"""

from __future__ import annotations

import json
import re

from cuota.core.wire.strict_json import BadJson

# A step is one bracket inside a member; a thousand line items have 2,000. A member of the object itself costs four steps, and
# ten more if its name has escapes.
MOST_STEPS = 4_000
_MEMBER_STEPS = 4
_ESCAPED_STEPS = 10
# A longer text cannot be a name that this code looks for, even with six bytes for each escaped character.
_LONGEST = 6 * 64

_STRING = rb'"(?:[^"\\]++|\\.)*+"'
_OPEN = re.compile(rb"[ \t\n\r]*+\{", re.DOTALL)
_NAME = re.compile(rb"[ \t\n\r]*+(" + _STRING + rb")[ \t\n\r]*+:[ \t\n\r]*+", re.DOTALL)
_PLAIN = re.compile(_STRING + rb'|[^ \t\n\r,:"{}\[\]]++', re.DOTALL)
_AFTER = re.compile(rb"[ \t\n\r]*+([,}])")
_TO_BRACKET = re.compile(rb'[^"{}\[\]]*+(?:' + _STRING + rb'[^"{}\[\]]*+)*+', re.DOTALL)


def find_text(body: bytes, name: str) -> object:
    """Return the text of the first member with this name; None if the member is absent or null, False if it is not a text.

    Raises BadJson if the part read so far is not a JSON object. The rest is not checked, because the caller later reads the whole
    body strictly.
    """
    found = _OPEN.match(body)
    if found is None:
        raise BadJson("it is not an object")
    at, steps, plain = found.end(), 0, json.dumps(name).encode()
    while True:
        steps += _MEMBER_STEPS
        named = _NAME.match(body, at)
        if named is None:
            _require_end(body, at, first=at == found.end())
            return None
        at = named.end()
        if b"\\" in named[1]:
            steps += _ESCAPED_STEPS
        if named[1] == plain or (b"\\" in named[1] and _text(named[1]) == name):
            return _value(body, at)
        at, steps = _skip(body, at, steps)
        if steps > MOST_STEPS:
            raise BadJson(f"it holds too much before {name}: send {name} first")
        after = _AFTER.match(body, at)
        if after is None:
            raise BadJson(f"expected , or }} at byte {at}")
        if after[1] == b"}":
            return None
        at = after.end()


def _require_end(body: bytes, at: int, *, first: bool) -> None:
    after = _AFTER.match(body, at)
    if not first or after is None or after[1] != b"}":
        raise BadJson(f"expected a name in quotes and a colon at byte {at}")


def _text(quoted: bytes) -> str | None:
    if len(quoted) > _LONGEST:
        return None
    try:
        text = json.loads(quoted)
    except ValueError:
        raise BadJson("a text is not readable") from None
    return text if isinstance(text, str) else None


def _value(body: bytes, at: int) -> object:
    found = _PLAIN.match(body, at)
    if found is None or found[0] == b"null":
        return False if found is None else None
    return (_text(found[0]) or False) if found[0].startswith(b'"') else False


def _skip(body: bytes, at: int, steps: int) -> tuple[int, int]:
    """Return the end of the value that begins here, and the number of steps so far."""
    plain = _PLAIN.match(body, at)
    if plain is not None:
        return plain.end(), steps
    depth = 0
    while steps <= MOST_STEPS:
        found = _TO_BRACKET.match(body, at)
        assert found is not None
        at = found.end()
        bracket = body[at : at + 1]
        if bracket not in {b"{", b"}", b"[", b"]"}:
            raise BadJson(f"a value does not end: byte {at}")
        at += 1
        steps += 1
        depth += 1 if bracket in b"{[" else -1
        if depth <= 0:
            break
    return at, steps
