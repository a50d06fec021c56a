"""The last messages of connections that the server closes before a request is complete.

The application cannot answer an incomplete request. The protocol sends one of these messages and closes the connection. It
resets the connection of a client that does not read.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Sequence
from socket import SO_LINGER, SOL_SOCKET
from typing import NamedTuple

from cuota.web.server.deadlines import BODY_SECONDS, HEAD_SECONDS
from cuota.web.server.request_id import new_request_id

MOST_URL_BYTES = 8 * 1024
MOST_HEADERS = 100
MOST_HEADER_BYTES = 16 * 1024
# The request line and the header fields together. A longer head is refused before it is complete.
MOST_HEAD_BYTES = MOST_URL_BYTES + MOST_HEADER_BYTES + 512


class Refusal(NamedTuple):
    """The HTTP status with its phrase, the reason label in the metrics, and the text of the body."""

    status: str
    reason: str
    text: str


TOO_LARGE = Refusal(
    "431 Request Header Fields Too Large",
    "large_head",
    f"A request may have at most {MOST_HEADERS} header fields, of at most {MOST_HEADER_BYTES} bytes in total.",
)
LONG_URL = Refusal(
    "414 URI Too Long", "long_url", f"The address of a request may have at most {MOST_URL_BYTES} bytes."
)
TOO_LONG = Refusal(
    "413 Content Too Large",
    "long_message",
    "The request sent more bytes after its head than the largest allowed body needs. Nothing was applied.",
)
UNREADABLE = Refusal("400 Bad Request", "unreadable", "Invalid HTTP request received.")
LATE_HEAD = Refusal(
    "408 Request Timeout",
    "late_head",
    f"The head of the request did not arrive within {HEAD_SECONDS} seconds.",
)
LATE_BODY = Refusal(
    "408 Request Timeout",
    "late_body",
    f"The body of the request did not arrive within {BODY_SECONDS} seconds. Nothing was applied.",
)
STOPPING = Refusal(
    "503 Service Unavailable",
    "stopping",
    "The service is stopping, and the request did not arrive in time. Nothing was applied. Try again shortly.",
)
FULL = Refusal(
    "503 Service Unavailable",
    "full",
    "The service has reached its limit of open connections. Nothing was applied. Try again shortly.",
)


def answer_of(refusal: Refusal, headers: Sequence[tuple[bytes, bytes]]) -> bytes:
    """Return the complete HTTP answer as bytes. `headers` are those that every answer has."""
    content = refusal.text.encode() + b"\n"
    head = [b"HTTP/1.1 " + refusal.status.encode(), *(name + b": " + value for name, value in headers)]
    head += [b"content-type: text/plain; charset=utf-8", b"content-length: %d" % len(content)]
    head.append(b"x-request-id: " + new_request_id().encode())
    if refusal.status.startswith("503"):
        head.append(b"retry-after: 1")
    return b"\r\n".join([*head, b"connection: close", b"", content])


def reset(transport: asyncio.Transport) -> None:
    """Close with a TCP reset. Otherwise the system would keep the unread bytes and continue to send them."""
    transport.get_extra_info("socket").setsockopt(SOL_SOCKET, SO_LINGER, struct.pack("ii", 1, 0))
    transport.abort()
