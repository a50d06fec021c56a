"""Form-encoded text, read and written as the standard library does, at a fraction of its cost.

`urllib.parse` decodes and encodes each name and each value by itself: 3,000 fields that nobody has signed yet took 40
milliseconds. Here the whole text is decoded and encoded at once, with bytes for the marks between fields that no UTF-8
text holds.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from urllib.parse import quote_from_bytes, unquote_to_bytes

_FIELD, _EQUALS = b"\xff", b"\xfe"
_MARK = re.compile(rb"%[fF][eEfF]")


def read(encoded: bytes, most: int) -> list[tuple[str, str]]:
    """Names and values in the order they came; a name alone has an empty value.

    Raises ValueError for more than `most` fields, and for what is no ASCII or no UTF-8 once decoded.
    """
    if encoded.count(b"&") >= most:
        raise ValueError("too many fields")
    if not encoded.isascii() or _MARK.search(encoded):
        raise ValueError("no UTF-8")
    marked = encoded.replace(b"&", _FIELD).replace(b"=", _EQUALS).replace(b"+", b" ")
    fields = []
    for field in unquote_to_bytes(marked).split(_FIELD):
        if field:
            name, _, value = field.partition(_EQUALS)
            fields.append((name.decode(), value.replace(_EQUALS, b"=").decode()))
    return fields


def written(fields: Iterable[tuple[str, str]]) -> bytes:
    """The fields form-encoded: letters, digits and `_.-~` stand for themselves, a space is `+`, all else is escaped."""
    marked = _FIELD.join(name.encode() + _EQUALS + value.encode() for name, value in fields)
    quoted = quote_from_bytes(marked, safe=b" ").replace(" ", "+")
    return quoted.replace("%FE", "=").replace("%FF", "&").encode()
