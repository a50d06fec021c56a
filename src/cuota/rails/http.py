"""Outgoing HTTP to addresses that merchants gave. Only this module calls those addresses.

It refuses private addresses, limits time and size, and reuses connections.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import socket
import ssl
import sys
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from importlib.util import find_spec
from typing import Any

import httpcore
from httpcore._backends.auto import AutoBackend

from cuota.core.webhook.delivery import TIMED_OUT, Attempt
from cuota.core.webhook.destination import is_allowed, is_loopback
from cuota.rails.public_tls import public_tls

# httpcore tries to import sniffio in every call. Without this entry, Python would search all folders each time.
if find_spec("sniffio") is None:
    sys.modules["sniffio"] = None  # type: ignore[assignment]

ACKNOWLEDGE_SECONDS = 10.0
BODY_SECONDS = 2.0
CLOSE_SECONDS = 2.0
# The longest time of an attempt: the response, then the start of its body, then closing the connection.
LONGEST_SECONDS = ACKNOWLEDGE_SECONDS + BODY_SECONDS + CLOSE_SECONDS
CONNECT_SECONDS = 4.0
assert CONNECT_SECONDS < ACKNOWLEDGE_SECONDS
# Common servers close an idle connection after five seconds. We close it earlier, so that no request uses a closed connection.
IDLE_SECONDS = 4.0
MOST_ANSWER_BYTES = 64 * 1024
# Small enough that reading one piece of garbage never blocks the event loop.
PIECE_BYTES = 8 * 1024
KEPT_ANSWER_BYTES = 1024
# Host names are resolved in separate threads, so that a name server that hangs delays neither other receivers nor the
# service's own lookups.
RESOLVERS = 32
# Only addresses that every parser reads in the same way: no user info, no backslash, only printable ASCII.
PLAIN_URL = re.compile(r"(?i:https?)://[!-.0->A-\[\]-~]+(?:[/?#][!-\[\]-~]*)?", re.ASCII)
log = logging.getLogger("cuota.webhooks")


class ForbiddenDestination(httpcore.ConnectError):
    """The host name resolves to an address to which webhooks may not go."""


class GuardedBackend(httpcore.AsyncNetworkBackend):
    """Resolves a host name, checks all of its addresses, and connects to a checked address.

    TLS and the Host header still use the name. Only the connection uses the checked address, so a DNS change between the
    check and the connection has no effect.
    """

    def __init__(self, *, loopback: bool, private: bool = False, resolvers: int = RESOLVERS) -> None:
        self._loopback, self._private = loopback, private
        self._inner = AutoBackend()
        self._closing: set[asyncio.Task[None]] = set()
        self._resolvers = ThreadPoolExecutor(resolvers, thread_name_prefix="cuota-resolve")

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore's signature
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Connect to the first checked address that answers. Raises ForbiddenDestination if any address is not allowed."""
        problem: Exception = httpcore.ConnectError("the name cannot be resolved")
        for address in await self._checked(host, port):
            try:
                stream = await self._inner.connect_tcp(
                    address, port, timeout=timeout, local_address=local_address, socket_options=socket_options
                )
            except httpcore.ConnectTimeout as failed:
                problem = failed
            except httpcore.ConnectError:
                # People read this text in their dashboard; the library's own does not say what was tried.
                problem = httpcore.ConnectError("the connection was refused, or the host cannot be reached")
            else:
                return _Bounded(stream, self._closing)
        raise problem

    async def _checked(self, host: str, port: int) -> list[str]:
        loop = asyncio.get_running_loop()
        try:
            found = await loop.run_in_executor(
                self._resolvers, lambda: socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            )
        except (OSError, UnicodeError):
            raise httpcore.ConnectError("the name cannot be resolved") from None
        addresses = list(dict.fromkeys(str(item[4][0]) for item in found))
        # All addresses must be allowed. A name with one public and one private address is refused.
        if not all(
            is_allowed(address, loopback=self._loopback, private=self._private) for address in addresses
        ):
            raise ForbiddenDestination("the address is not on the public internet")
        return addresses

    async def connect_unix_socket(self, path: str, *_: Any, **__: Any) -> httpcore.AsyncNetworkStream:
        """Refuse every connection to a Unix socket."""
        raise ForbiddenDestination(f"{path} is not on the public internet")

    async def sleep(self, seconds: float) -> None:
        """Sleep for this many seconds."""
        await asyncio.sleep(seconds)

    async def close(self) -> None:
        """Stop the threads that resolve names, and wait until the connections that were given up are closed."""
        self._resolvers.shutdown(wait=False, cancel_futures=True)
        if self._closing:
            # Unlike gather(), wait() lets the connections close if this call is canceled.
            await asyncio.wait(self._closing)


class _Bounded(httpcore.AsyncNetworkStream):
    """A connection that reads at most the allowed size of a response, headers included, for each request."""

    def __init__(self, inner: httpcore.AsyncNetworkStream, closing: set[asyncio.Task[None]]) -> None:
        """`closing` holds the connections that are being closed."""
        self._inner, self._closing = inner, closing
        self._left = MOST_ANSWER_BYTES

    async def read(
        self,
        max_bytes: int,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore's signature
    ) -> bytes:
        if self._left <= 0:
            raise httpcore.ReadError("the answer is longer than 64 KiB")
        data = await self._inner.read(min(max_bytes, self._left, PIECE_BYTES), timeout)
        self._left -= len(data)
        return data

    async def write(
        self,
        buffer: bytes,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore's signature
    ) -> None:
        self._left = MOST_ANSWER_BYTES
        await self._inner.write(buffer, timeout)

    async def aclose(self) -> None:
        """Begin to close the connection, without awaiting anything.

        An attempt also closes other receivers' idle connections, one after another. If this method awaited something and
        was canceled there, the rest of them would stay open.
        """
        task = asyncio.ensure_future(self._inner.aclose())
        self._closing.add(task)
        task.add_done_callback(self._closed)

    def _closed(self, task: asyncio.Task[None]) -> None:
        self._closing.discard(task)
        if not task.cancelled():
            # The connection is gone in any case. Reading the exception keeps asyncio from logging it.
            task.exception()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore's signature
    ) -> httpcore.AsyncNetworkStream:
        return _Bounded(await self._inner.start_tls(ssl_context, server_hostname, timeout), self._closing)

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


class GuardedClient:
    """One connection pool for all receivers. `loopback` allows loopback addresses; `tls` replaces the public CAs."""

    def __init__(self, *, loopback: bool, connections: int = 400, tls: ssl.SSLContext | None = None) -> None:
        self._backend = GuardedBackend(loopback=loopback)
        self._pool = httpcore.AsyncConnectionPool(
            # Without a context, httpcore would read the whole list of CAs for each connection.
            ssl_context=tls or public_tls(),
            max_connections=connections,
            max_keepalive_connections=connections,
            keepalive_expiry=IDLE_SECONDS,
            network_backend=self._backend,
        )

    async def post(
        self,
        url: str,
        headers: list[tuple[str, str]],
        body: bytes,
        *,
        seconds: float = ACKNOWLEDGE_SECONDS,
    ) -> Attempt:
        """Send once, wait `seconds` for a response, and return the attempt. Raises nothing, whatever the receiver does.

        Redirects are not followed: they count as responses.
        """
        started = time.monotonic()
        if not PLAIN_URL.fullmatch(url):
            return Attempt(None, 0, "the address cannot be used")
        try:
            async with asyncio.timeout(seconds) as limit:
                return await self._post(url, headers, body, started, limit)
        except (TimeoutError, httpcore.TimeoutException):
            return Attempt(None, _ms(started), TIMED_OUT)
        except (httpcore.NetworkError, httpcore.ProtocolError, OSError) as problem:
            return Attempt(None, _ms(started), _words(problem))
        except (httpcore.UnsupportedProtocol, ValueError):
            return Attempt(None, _ms(started), "the address cannot be used")
        except Exception:
            # A strange response may trigger a bug in our code or in a library. Only this attempt fails then.
            log.exception("webhook failed")
            return Attempt(None, _ms(started), "the answer cannot be read")

    async def _post(
        self, url: str, headers: list[tuple[str, str]], body: bytes, started: float, limit: asyncio.Timeout
    ) -> Attempt:
        # Waiting for the pool needs no limit of its own, because the whole attempt has one.
        limits = {"connect": CONNECT_SECONDS, "read": ACKNOWLEDGE_SECONDS, "write": ACKNOWLEDGE_SECONDS}
        async with self._pool.stream(
            "POST", url, headers=headers, content=body, extensions={"timeout": limits}
        ) as answer:
            limit.reschedule(asyncio.get_running_loop().time() + BODY_SECONDS + CLOSE_SECONDS)
            kept = await _first_bytes(answer)
            if _from_here(answer):
                # Another service on this machine may have answered. The merchant may see its status, but never its text.
                kept = b""
            return Attempt(answer.status, _ms(started), None, kept, _retry_after(answer.headers))

    async def close(self) -> None:
        """Close every connection."""
        try:
            await self._pool.aclose()
        finally:
            await self._backend.close()


def _from_here(answer: httpcore.Response) -> bool:
    """True if the response came from this machine, or if that is not known."""
    stream = answer.extensions.get("network_stream")
    peer = stream.get_extra_info("server_addr") if stream is not None else None
    return not isinstance(peer, tuple) or is_loopback(str(peer[0]))


async def _first_bytes(answer: httpcore.Response) -> bytes:
    """Return the start of the body, for people to read. Only the status decides about success."""
    read = bytearray()
    with contextlib.suppress(
        TimeoutError, httpcore.NetworkError, httpcore.ProtocolError, httpcore.ReadTimeout
    ):
        async with asyncio.timeout(BODY_SECONDS):
            async for chunk in answer.aiter_stream():
                read += chunk[: KEPT_ANSWER_BYTES - len(read)]
    return bytes(read)


def _ms(started: float) -> int:
    return int((time.monotonic() - started) * 1000)


def _words(problem: BaseException) -> str:
    # PostgreSQL's text type cannot store the NUL character.
    text = str(problem).replace("\0", " ").strip()
    return (text or type(problem).__name__)[:200]


def _retry_after(headers: list[tuple[bytes, bytes]]) -> int | None:
    """Return the seconds of a Retry-After header, in either format (seconds or date), or None for anything else."""
    for name, value in headers:
        if name.lower() != b"retry-after":
            continue
        if value.isdigit():
            return int(value[:9])
        with contextlib.suppress(ValueError, TypeError, OverflowError):
            until = parsedate_to_datetime(value.decode("ascii"))
            if until.tzinfo is not None:
                return max(0, int((until - datetime.now(UTC)).total_seconds()))
    return None
