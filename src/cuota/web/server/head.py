"""The limits of a request's head, and the transport of a request that may be answered before its body is complete."""

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
    """Why a complete head is too large; None if it is not. At most `head_bytes` were read for it."""
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
    """The parts of a connection's protocol that `Lingering` needs."""

    transport: asyncio.Transport
    cycle: RequestResponseCycle

    def linger(self) -> None:
        """Close after the answer; until then read and drop what still arrives."""


class Lingering:
    """The transport of a request with a body: when the request closes it, the rest of the body is read first."""

    def __init__(self, connection: ClientConnection) -> None:
        self._connection = connection
        self.write = connection.transport.write
        self.is_closing = connection.transport.is_closing

    def close(self) -> None:
        """Close at once if the body is complete, otherwise when the client had time to read the answer."""
        connection = self._connection
        if connection.cycle.more_body and not connection.transport.is_closing():
            connection.linger()
        else:
            connection.transport.close()
