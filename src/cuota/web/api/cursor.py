"""Cursors of a list: the number of the last entry, with a digest of the list that it belongs to."""

from __future__ import annotations

import base64
import binascii
import hashlib

from cuota.db.order.documents import encode
from cuota.web.fields import WrongField

_BOUND = 8
"""Length in bytes of the digest."""


def binding(*parts: object) -> bytes:
    """Return a digest of what identifies the list: the merchant and the filters."""
    return hashlib.sha256(encode(parts)).digest()[:_BOUND]


def write(bound: bytes, number: int) -> str:
    """Return the cursor of the page after the entry with this number."""
    return base64.urlsafe_b64encode(bound + number.to_bytes(8)).decode()


def read(text: str, bound: bytes) -> int:
    """Return the number in a cursor. Raises WrongField if it is not a cursor of this list."""
    try:
        decoded = base64.b64decode(text.encode("ascii"), altchars=b"-_", validate=True)
    except (UnicodeEncodeError, binascii.Error):
        decoded = b""
    if len(decoded) != _BOUND + 8 or decoded[:_BOUND] != bound or decoded[_BOUND] > 0x7F:
        message = "is not a cursor of this list: send nextCursor unchanged, with the same filters"
        raise WrongField("invalid", message)
    return int.from_bytes(decoded[_BOUND:])
