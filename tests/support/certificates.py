"""Loads the certificate authorities once for all HTTP clients of a test process.

httpx loads them for each client. That takes 20 ms, and the tests make thousands of clients.
"""

from __future__ import annotations

from functools import cache

from httpx._transports import default


def load_once() -> None:
    """Make all later clients with the same TLS options share one SSL context."""
    default.create_ssl_context = cache(default.create_ssl_context)  # type: ignore[attr-defined]
