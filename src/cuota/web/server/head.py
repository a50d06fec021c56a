"""The bounds of a request's head, and the transport of a request that may be answered before its body has come."""

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
    """Why a head that has come whole is too large; None where it is not. `head_bytes` were read for it, and no more."""
    if len(url) > MOST_URL_BYTES:
        return LONG_URL
    many = len(headers) > MOST_HEADERS
    if many or (head_bytes > MOST_HEADER_BYTES and _size(headers) > MOST_HEADER_BYTES):
        return TOO_LARGE
    return None


def _size(headers: Headers) -> int:
    """The bytes of these header fields on the wire."""
    return sum(len(name) + len(value) + 4 for name, value in headers)


class ClientConnection(Protocol):
    """What is needed of the protocol of a connection."""

    transport: asyncio.Transport
    cycle: RequestResponseCycle

    def linger(self) -> None:
        """End after the answer, and drop what still comes for a moment."""


class Lingering:
    """The transport as the cycle of a request with a body sees it: closing it waits for the rest of the body."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection
        self.write = connection.transport.write
        self.is_closing = connection.transport.is_closing

    def close(self) -> None:
        """Close at once, or once the peer had time to read the answer."""
        connection = self._connection
        if connection.cycle.more_body and not connection.transport.is_closing():
            connection.linger()
        else:
            connection.transport.close()
