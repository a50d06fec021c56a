"""The common parts of the blocking and the asyncio client: defaults, options, and the conversion of httpx results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal
from urllib.parse import urlsplit

import httpx

from cuota.client.talk import ClientOptions, HttpAnswer, Lost

PAUSES = (0.2, 0.8, 2.0)
LONGEST_WAIT = 30.0
TIMEOUT = 15.0
PAGE = 100
USER_AGENT = {"User-Agent": "cuota-client/1"}

Operation = Literal["capture", "void", "refund"]
# With these errors the request was never sent, so the service cannot have applied it.
_NEVER_SENT = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)


def terms_of(
    base_url: str, client_id: str, client_secret: str, audience: str | None, auth_url: str | None,
    pauses: Sequence[float], longest_wait: float,
) -> ClientOptions:  # fmt: skip
    """Check the options of a client and fill in the defaults. Raises ValueError."""
    if not client_id or not client_secret:
        raise ValueError("client_id and client_secret are required. The provider issues them.")
    base = _address("base_url", base_url)
    auth = base if auth_url is None else _address("auth_url", auth_url)
    return ClientOptions(base, auth, client_id, client_secret, audience or auth, tuple(pauses), longest_wait)


def _address(name: str, value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.query or parts.fragment:
        raise ValueError(f"{name} is {value!r}; it must be an address such as https://pay.example.")
    return value.rstrip("/")


def answer_of(response: httpx.Response) -> HttpAnswer:
    """Convert a response from httpx."""
    return HttpAnswer(response.status_code, response.headers, response.content)


def lost(problem: httpx.RequestError) -> Lost:
    """Convert an httpx error, which means that no answer arrived."""
    return Lost(type(problem).__name__, not isinstance(problem, _NEVER_SENT))
