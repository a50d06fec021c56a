"""Outgoing HTTP to addresses that merchants gave: guarded, bounded, pooled. Nothing else calls out to them."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import time
from collections.abc import Iterable
from typing import Any

import httpcore
from httpcore._backends.auto import AutoBackend

from cuota.core.delivery import Attempt
from cuota.core.destination import is_allowed

ACKNOWLEDGE_SECONDS = 10.0
BODY_SECONDS = 2.0
ATTEMPT_SECONDS = 18.0
MOST_ANSWER_BYTES = 64 * 1024
KEPT_ANSWER_BYTES = 1024


class ForbiddenDestination(httpcore.ConnectError):
    """The name leads to an address that webhooks may not go to."""


class GuardedBackend(httpcore.AsyncNetworkBackend):
    """Resolves a name, judges every address that it has, and connects to one that was judged.

    TLS and the Host header keep the name: only the connection goes to the checked address, so a name that changes
    between check and connect changes nothing.
    """

    def __init__(self, *, loopback: bool) -> None:
        self._loopback = loopback
        self._inner = AutoBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore's signature
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Connect to the first checked address; raises ForbiddenDestination if any is not allowed."""
        address = await self._checked(host, port)
        return await self._inner.connect_tcp(
            address, port, timeout=timeout, local_address=local_address, socket_options=socket_options
        )

    async def _checked(self, host: str, port: int) -> str:
        loop = asyncio.get_running_loop()
        try:
            found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError):
            raise httpcore.ConnectError("the name cannot be resolved") from None
        addresses = [str(item[4][0]) for item in found]
        # All must pass: a name with one address outside and one inside is not half allowed.
        if not addresses or not all(is_allowed(address, loopback=self._loopback) for address in addresses):
            raise ForbiddenDestination("the address is not on the public internet")
        return addresses[0]

    async def connect_unix_socket(self, path: str, *_: Any, **__: Any) -> httpcore.AsyncNetworkStream:
        """Never."""
        raise ForbiddenDestination(f"{path} is not on the public internet")

    async def sleep(self, seconds: float) -> None:
        """As asked."""
        await asyncio.sleep(seconds)


class GuardedClient:
    """One pool for all receivers. `loopback` is true in the sandbox only."""

    def __init__(self, *, loopback: bool, connections: int = 200) -> None:
        self._pool = httpcore.AsyncConnectionPool(
            max_connections=connections,
            max_keepalive_connections=connections,
            keepalive_expiry=20,
            network_backend=GuardedBackend(loopback=loopback),
        )

    async def post(self, url: str, headers: list[tuple[str, str]], body: bytes) -> Attempt:
        """Send once; never raises for what the other side does. Redirects are answers like any other."""
        started = time.monotonic()
        try:
            async with asyncio.timeout(ATTEMPT_SECONDS):
                return await self._post(url, headers, body, started)
        except TimeoutError:
            return Attempt(None, _ms(started), "no complete answer in time")
        except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.TimeoutException, OSError) as problem:
            return Attempt(None, _ms(started), _words(problem))
        except (httpcore.UnsupportedProtocol, ValueError, UnicodeError):
            return Attempt(None, _ms(started), "the address cannot be used")

    async def _post(self, url: str, headers: list[tuple[str, str]], body: bytes, started: float) -> Attempt:
        limits = {"connect": 5.0, "read": ACKNOWLEDGE_SECONDS, "write": 5.0, "pool": 5.0}
        async with self._pool.stream(
            "POST", url, headers=headers, content=body, extensions={"timeout": limits}
        ) as answer:
            in_time = time.monotonic() - started <= ACKNOWLEDGE_SECONDS
            error = None if in_time else f"answered after {ACKNOWLEDGE_SECONDS:.0f} seconds"
            kept = await _first_bytes(answer)
            return Attempt(answer.status, _ms(started), error, kept, _retry_after(answer.headers))

    async def close(self) -> None:
        """Close every connection."""
        await self._pool.aclose()


async def _first_bytes(answer: httpcore.Response) -> bytes:
    """What an operator may want to see. The status has decided already: a body without end changes nothing."""
    read = bytearray()
    with contextlib.suppress(
        TimeoutError, httpcore.NetworkError, httpcore.ProtocolError, httpcore.ReadTimeout
    ):
        async with asyncio.timeout(BODY_SECONDS):
            async for chunk in answer.aiter_stream():
                read += chunk[: MOST_ANSWER_BYTES - len(read)]
                if len(read) >= MOST_ANSWER_BYTES:
                    break
    return bytes(read[:KEPT_ANSWER_BYTES])


def _ms(started: float) -> int:
    return int((time.monotonic() - started) * 1000)


def _words(problem: BaseException) -> str:
    text = str(problem).strip()
    return (text or type(problem).__name__)[:200]


def _retry_after(headers: list[tuple[bytes, bytes]]) -> int | None:
    for name, value in headers:
        if name.lower() == b"retry-after" and value.isdigit() and len(value) < 10:
            return int(value)
    return None
