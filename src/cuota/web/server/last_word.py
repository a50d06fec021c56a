"""The messages that a connection ends with when there is no complete request for the application to answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from cuota.web.server.deadlines import BODY_SECONDS, HEAD_SECONDS
from cuota.web.server.request_id import new_request_id

MOST_URL_BYTES = 8 * 1024
MOST_HEADERS = 100
MOST_HEADER_BYTES = 16 * 1024
# The request line and the header fields together. A head that is longer is refused before it is complete.
MOST_HEAD_BYTES = MOST_URL_BYTES + MOST_HEADER_BYTES + 512


class Refusal(NamedTuple):
    """The status line, the reason as the metrics name it, and the text."""

    status: str
    reason: str
    text: str


TOO_LARGE = Refusal(
    "431 Request Header Fields Too Large",
    "large_head",
    f"A request may have at most {MOST_HEADERS} header fields, and {MOST_HEADER_BYTES} bytes of them.",
)
LONG_URL = Refusal(
    "414 URI Too Long", "long_url", f"The address of a request may have at most {MOST_URL_BYTES} bytes."
)
TOO_LONG = Refusal(
    "413 Content Too Large",
    "long_message",
    "The request has more bytes behind its head than any body may need. Nothing was applied.",
)
UNREADABLE = Refusal("400 Bad Request", "unreadable", "Invalid HTTP request received.")
LATE_HEAD = Refusal(
    "408 Request Timeout",
    "late_head",
    f"The head of the request did not come within {HEAD_SECONDS} seconds.",
)
LATE_BODY = Refusal(
    "408 Request Timeout",
    "late_body",
    f"The body of the request did not come within {BODY_SECONDS} seconds. Nothing was applied.",
)
STOPPING = Refusal(
    "503 Service Unavailable",
    "stopping",
    "The service stops, and the request was not there in time. Nothing was applied. Try again shortly.",
)
FULL = Refusal(
    "503 Service Unavailable",
    "full",
    "As many connections are open as the service takes. Nothing was applied. Try again shortly.",
)


def answer_of(refusal: Refusal, headers: Sequence[tuple[bytes, bytes]]) -> bytes:
    """The complete answer, with the headers of every answer and `Connection: close`."""
    content = refusal.text.encode() + b"\n"
    head = [b"HTTP/1.1 " + refusal.status.encode(), *(name + b": " + value for name, value in headers)]
    head += [b"content-type: text/plain; charset=utf-8", b"content-length: %d" % len(content)]
    head.append(b"x-request-id: " + new_request_id().encode())
    if refusal.status.startswith("503"):
        head.append(b"retry-after: 1")
    return b"\r\n".join([*head, b"connection: close", b"", content])
