"""Outgoing HTTP to addresses that merchants gave: guarded, bounded, pooled. Nothing else calls out to them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
import socket
import ssl
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any

import httpcore
from httpcore._backends.auto import AutoBackend

from cuota.core.webhook.delivery import TIMED_OUT, Attempt
from cuota.core.webhook.destination import is_allowed, is_loopback

ACKNOWLEDGE_SECONDS = 10.0
BODY_SECONDS = 2.0
CLOSE_SECONDS = 2.0
# The longest that an attempt takes: the answer, then the start of its body, then the end of the connection.
LONGEST_SECONDS = ACKNOWLEDGE_SECONDS + BODY_SECONDS + CLOSE_SECONDS
CONNECT_SECONDS = 4.0
assert CONNECT_SECONDS < ACKNOWLEDGE_SECONDS
# Below the five seconds after which common servers close an idle connection, perhaps under a request.
IDLE_SECONDS = 4.0
MOST_ANSWER_BYTES = 64 * 1024
# So small that reading a piece of rubbish never holds the loop up.
PIECE_BYTES = 8 * 1024
KEPT_ANSWER_BYTES = 1024
# Names are looked up by threads of their own: a name server that hangs holds up neither the other receivers nor the
# service's own lookups.
RESOLVERS = 32
# Nothing that two readers may take for two places: no user info, no backslash, nothing but printable ASCII.
_PLAIN = re.compile(r"(?i:https?)://[!-.0->A-\[\]-~]+(?:[/?#][!-\[\]-~]*)?", re.ASCII)
log = logging.getLogger("cuota.webhooks")


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
        self._resolvers = ThreadPoolExecutor(RESOLVERS, thread_name_prefix="cuota-resolve")

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore's signature
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        """Connect to the first checked address that answers; raises ForbiddenDestination if any is not allowed."""
        problem: Exception = httpcore.ConnectError("the name cannot be resolved")
        for address in await self._checked(host, port):
            try:
                stream = await self._inner.connect_tcp(
                    address, port, timeout=timeout, local_address=local_address, socket_options=socket_options
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as failed:
                problem = failed
            else:
                return _Bounded(stream)
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
        # All must pass: a name with one address outside and one inside is not half allowed.
        if not all(is_allowed(address, loopback=self._loopback) for address in addresses):
            raise ForbiddenDestination("the address is not on the public internet")
        return addresses

    async def connect_unix_socket(self, path: str, *_: Any, **__: Any) -> httpcore.AsyncNetworkStream:
        """Never."""
        raise ForbiddenDestination(f"{path} is not on the public internet")

    async def sleep(self, seconds: float) -> None:
        """As asked."""
        await asyncio.sleep(seconds)

    def close(self) -> None:
        """Look up no more names."""
        self._resolvers.shutdown(wait=False, cancel_futures=True)


class _Bounded(httpcore.AsyncNetworkStream):
    """A connection of which no more is read for one request than an answer may have, head and all."""

    def __init__(self, inner: httpcore.AsyncNetworkStream) -> None:
        self._inner = inner
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
        await self._inner.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - httpcore's signature
    ) -> httpcore.AsyncNetworkStream:
        return _Bounded(await self._inner.start_tls(ssl_context, server_hostname, timeout))

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


class GuardedClient:
    """One pool for all receivers. `loopback` allows this machine's own addresses; `tls` is whom to trust if not the public CAs."""

    def __init__(self, *, loopback: bool, connections: int = 400, tls: ssl.SSLContext | None = None) -> None:
        self._backend = GuardedBackend(loopback=loopback)
        self._pool = httpcore.AsyncConnectionPool(
            # Made once: httpcore would read the whole list of CAs anew for each connection.
            ssl_context=tls or httpcore.default_ssl_context(),
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
        """Send once, and wait `seconds` for an answer; never raises for what the other side does.

        Redirects are answers like any other.
        """
        started = time.monotonic()
        if not _PLAIN.fullmatch(url):
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
            # What a receiver answers may find a bug of ours or of a library: it costs that receiver a try.
            log.exception("webhook failed")
            return Attempt(None, _ms(started), "the answer cannot be read")

    async def _post(
        self, url: str, headers: list[tuple[str, str]], body: bytes, started: float, limit: asyncio.Timeout
    ) -> Attempt:
        # The pool's own wait needs no limit: the whole has one.
        limits = {"connect": CONNECT_SECONDS, "read": ACKNOWLEDGE_SECONDS, "write": ACKNOWLEDGE_SECONDS}
        async with self._pool.stream(
            "POST", url, headers=headers, content=body, extensions={"timeout": limits}
        ) as answer:
            limit.reschedule(asyncio.get_running_loop().time() + BODY_SECONDS + CLOSE_SECONDS)
            kept = await _first_bytes(answer)
            if _from_here(answer):
                # Another service of this machine may have answered: a merchant learns the status, never the text.
                kept = b""
            return Attempt(answer.status, _ms(started), None, kept, _retry_after(answer.headers))

    async def close(self) -> None:
        """Close every connection."""
        self._backend.close()
        await self._pool.aclose()


def _from_here(answer: httpcore.Response) -> bool:
    """Whether the answer came from this machine itself; one that cannot be told is taken for such."""
    stream = answer.extensions.get("network_stream")
    peer = stream.get_extra_info("server_addr") if stream is not None else None
    return not isinstance(peer, tuple) or is_loopback(str(peer[0]))


async def _first_bytes(answer: httpcore.Response) -> bytes:
    """What an operator may want to see. The status has decided already: a body without end changes nothing."""
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
    # No NUL, which the database's text cannot hold.
    text = str(problem).replace("\0", " ").strip()
    return (text or type(problem).__name__)[:200]


def _retry_after(headers: list[tuple[bytes, bytes]]) -> int | None:
    """Seconds, or the date form; None for anything else."""
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
