"""The TLS context for calls to public addresses, with the public certificate authorities."""

from __future__ import annotations

import ssl
from functools import cache

import httpcore


@cache
def public_tls() -> ssl.SSLContext:
    """Return one context for the whole process. Reading the list of certificate authorities takes about 20 ms."""
    return httpcore.default_ssl_context()
