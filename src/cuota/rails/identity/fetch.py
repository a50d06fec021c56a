"""Calls to the provider: small JSON documents, over connections to checked addresses only (`rails/http.py`)."""

from __future__ import annotations

import asyncio
import json
from typing import Any, NamedTuple

import httpcore

from cuota.rails.http import CONNECT_SECONDS, PLAIN_URL, GuardedBackend
from cuota.rails.public_tls import public_tls
from cuota.rails.unavailable import RailUnavailable

# The timeout of one call. A person waits for the response.
SECONDS = 5.0
assert CONNECT_SECONDS < SECONDS
HeaderList = list[tuple[str, str]]


class Fetched(NamedTuple):
    """A response: its status, and its JSON object."""

    status: int
    document: dict[str, Any]


class JsonClient:
    """Fetches JSON. `loopback` and `private` allow addresses of this machine and of private networks.

    The client follows no redirects. A response has at most 64 KiB, and a call takes at most five seconds. Each call opens a new
    connection, because sign-ins are too rare to keep connections open.
    """

    def __init__(self, *, loopback: bool, private: bool) -> None:
        self._backend = GuardedBackend(loopback=loopback, private=private, resolvers=2)
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=public_tls(),
            max_connections=20,
            max_keepalive_connections=0,
            network_backend=self._backend,
        )

    async def get(self, url: str, headers: HeaderList | None = None) -> dict[str, Any]:
        """Return the JSON object at this address.

        Raises RailUnavailable for every other response, and if there is no response.
        """
        answer = await self._call("GET", url, headers or [], None)
        if answer.status != 200:
            raise RailUnavailable(f"status {answer.status}")
        return answer.document

    async def post(self, url: str, headers: HeaderList, body: str) -> Fetched:
        """Send a form. Raises RailUnavailable if there is no response, or if the response is not a JSON object."""
        sent = [*headers, ("content-type", "application/x-www-form-urlencoded")]
        return await self._call("POST", url, sent, body.encode())

    async def _call(self, method: str, url: str, headers: HeaderList, body: bytes | None) -> Fetched:
        if not PLAIN_URL.fullmatch(url):
            raise RailUnavailable("the address cannot be used")
        sent = [("accept", "application/json"), ("accept-encoding", "identity"), *headers]
        try:
            async with asyncio.timeout(SECONDS):
                answer = await self._pool.request(
                    method,
                    url,
                    headers=sent,
                    content=body,
                    extensions={"timeout": {"connect": CONNECT_SECONDS}},
                )
        except (TimeoutError, httpcore.TimeoutException):
            raise RailUnavailable("no answer in time") from None
        except (
            httpcore.NetworkError,
            httpcore.ProtocolError,
            httpcore.UnsupportedProtocol,
            OSError,
        ) as problem:
            # The text of the error is about the connection and contains no secret.
            raise RailUnavailable(f"{type(problem).__name__}: {problem}"[:200]) from None
        return Fetched(answer.status, _object(answer.content))

    async def close(self) -> None:
        """Close every connection."""
        try:
            await self._pool.aclose()
        finally:
            await self._backend.close()


def _object(content: bytes) -> dict[str, Any]:
    try:
        document = json.loads(content)
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise RailUnavailable("the answer is not a JSON object")
    return document
