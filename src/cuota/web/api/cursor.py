"""Cursors of a list: the number or the id of the last entry, with a digest of the list that it belongs to."""

from __future__ import annotations

import base64
import binascii
import hashlib
from uuid import UUID

from cuota.db.order.documents import encode
from cuota.web.fields import WrongField

_BOUND = 8
"""The length of the digest in bytes."""


def binding(*parts: object) -> bytes:
    """Return a digest of what identifies the list: the merchant and the filters."""
    return hashlib.sha256(encode(parts)).digest()[:_BOUND]


def write(bound: bytes, number: int) -> str:
    """Return the cursor of the page after the entry with this number."""
    return base64.urlsafe_b64encode(bound + number.to_bytes(8)).decode()


def write_id(bound: bytes, last: UUID) -> str:
    """Return the cursor of the page after the entry with this id."""
    return base64.urlsafe_b64encode(bound + last.bytes).decode()


def read(text: str, bound: bytes) -> int:
    """Return the number in a cursor. Raises WrongField if it is not a cursor of this list."""
    place = _place(text, bound)
    if len(place) != 8 or place[0] > 0x7F:
        raise _not_of_this_list()
    return int.from_bytes(place)


def read_id(text: str, bound: bytes) -> UUID:
    """Return the id in a cursor. Raises WrongField if it is not a cursor of this list."""
    place = _place(text, bound)
    if len(place) != 16:
        raise _not_of_this_list()
    return UUID(bytes=place)


def _place(text: str, bound: bytes) -> bytes:
    try:
        decoded = base64.b64decode(text.encode("ascii"), altchars=b"-_", validate=True)
    except (UnicodeEncodeError, binascii.Error):
        decoded = b""
    if decoded[:_BOUND] != bound:
        raise _not_of_this_list()
    return decoded[_BOUND:]


def _not_of_this_list() -> WrongField:
    return WrongField(
        "invalid", "is not a cursor of this list: send nextCursor unchanged, with the same filters"
    )
