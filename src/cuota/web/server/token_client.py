"""Finds out which OAuth client sends a token request, before the request is admitted.

Admission counts each known client separately from unknown clients. The client's id is in the Authorization header or in
the body, so the body is read before admission. The body is small, and a request holds no place while its body is read.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
from collections.abc import Iterable

from starlette.types import Message, Receive, Scope

from cuota.web.body import MOST_SMALL_BYTES

_IN_JSON = re.compile(rb'"client_id"[ \t\r\n]*+:[ \t\r\n]*+"([^"\\]{1,1024})"')
_IN_FORM = re.compile(rb"(?:^|&)client_id=([^&%+]{1,1024})(?:&|$)")


async def read_client(scope: Scope, receive: Receive) -> tuple[bytes | None, Receive]:
    """Return the client id of a token request, and a `receive` that delivers the body again.

    The client id is None if the request has no client id, or one with escape sequences.
    """
    messages: list[Message] = []
    body = b""
    while len(body) <= MOST_SMALL_BYTES:
        message = await receive()
        messages.append(message)
        body += message.get("body", b"")
        if not message.get("more_body"):
            break

    async def again() -> Message:
        return messages.pop(0) if messages else await receive()

    return _in_header(scope["headers"]) or _in_body(body[:MOST_SMALL_BYTES]), again


def _in_header(headers: Iterable[tuple[bytes, bytes]]) -> bytes | None:
    for name, value in headers:
        if name == b"authorization" and value[:6].lower() == b"basic ":
            try:
                return base64.b64decode(value[6:].strip(), validate=True).partition(b":")[0] or None
            except (ValueError, binascii.Error):
                return None
    return None


def _in_body(body: bytes) -> bytes | None:
    found = _IN_JSON.search(body) or _IN_FORM.search(body)
    return found[1] if found else None


def client_of_token(headers: Iterable[tuple[bytes, bytes]]) -> bytes | None:
    """Return the client id in the access token of these headers, or None.

    The signature is not checked here. Call this only after it was verified.
    """
    header = next((value for name, value in headers if name == b"authorization"), b"")
    parts = header.rpartition(b" ")[2].split(b".")
    try:
        claims = json.loads(base64.urlsafe_b64decode(parts[1] + b"=" * (-len(parts[1]) % 4)))
        return str(claims["sub"]).encode()
    except (ValueError, KeyError, IndexError, TypeError, binascii.Error):
        return None
