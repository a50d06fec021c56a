"""Requests that attempt request smuggling: a proxy and a server could read them differently."""

from __future__ import annotations

HEAD = b"POST /order HTTP/1.1\r\nHost: x\r\n"


SMUGGLED: dict[str, bytes] = {
    "two lengths": HEAD + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}x",
    "length -1": HEAD + b"Content-Length: -1\r\n\r\n",
    "length +5": HEAD + b"Content-Length: +5\r\n\r\nhello",
    "length 5,5": HEAD + b"Content-Length: 5,5\r\n\r\nhello",
    "length and chunked": HEAD + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "xchunked": HEAD + b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    "chunked twice": HEAD + b"Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n",
    "space before colon": HEAD + b"X-A : b\r\n\r\n",
    "folded header": HEAD + b"X-A: b\r\n c\r\nContent-Length: 0\r\n\r\n",
    "NUL in a header": HEAD + b"X-A: b\0c\r\n\r\n",
    "no host": b"GET /health/live HTTP/1.1\r\n\r\n",
    "two hosts": b"GET /health/live HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n",
    "line feeds only": b"GET /health/live HTTP/1.1\nHost: x\n\n",
}  # fmt: skip
