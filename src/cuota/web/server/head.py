"""Limits on the head of a request, and the transport for requests that may be answered before their body is complete."""

from __future__ import annotations

import asyncio
from typing import Protocol

from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

from cuota.web.server.last_word import (
    LONG_URL,
    MOST_HEADER_BYTES,
    MOST_HEADERS,
    MOST_URL_BYTES,
    TOO_LARGE,
    Refusal,
)

Headers = list[tuple[bytes, bytes]]


def head_refusal(url: bytes, headers: Headers, head_bytes: int) -> Refusal | None:
    """Return why a complete head is too large, or None if it is not.

    `head_bytes` is an upper bound for the size of the head: the number of bytes that were read.
    """
    if len(url) > MOST_URL_BYTES:
        return LONG_URL
    many = len(headers) > MOST_HEADERS
    if many or (head_bytes > MOST_HEADER_BYTES and _size(headers) > MOST_HEADER_BYTES):
        return TOO_LARGE
    return None


def _size(headers: Headers) -> int:
    """Return the size of these header fields on the wire, in bytes."""
    return sum(len(name) + len(value) + 4 for name, value in headers)


class ClientConnection(Protocol):
    """The parts of a connection's protocol that `Lingering` needs."""

    transport: asyncio.Transport
    cycle: RequestResponseCycle

    def linger(self) -> None:
        """Close the connection a moment after the answer. Until then, read and discard the bytes that still arrive."""


class Lingering:
    """The transport of a request with a body. When the request closes the transport, the rest of the body is read first."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection
        self.write = connection.transport.write
        self.is_closing = connection.transport.is_closing

    def close(self) -> None:
        """Close at once if the body is complete; otherwise close after the client had time to read the answer."""
        connection = self._connection
        if connection.cycle.more_body and not connection.transport.is_closing():
            connection.linger()
        else:
            connection.transport.close()
