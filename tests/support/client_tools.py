"""Calls both clients in the same way, and has a TCP proxy that loses answers."""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from cuota.client import AsyncClient, Client, Event, Order
from support.makers import Merchant
from support.waiting import until

PAUSES = (0.01, 0.01)


class Both:
    """Either client, called in the same way:

    `await both("capture", ...)`. The blocking client runs in a thread for each call.
    """

    def __init__(self, client: Client | AsyncClient, threads: ThreadPoolExecutor) -> None:
        self.client = client
        self.threads = threads

    @classmethod
    @asynccontextmanager
    async def of(cls, kind: str, merchant: Merchant, **more: Any) -> AsyncIterator[Both]:
        settings = merchant.service.settings
        given = {
            "base_url": settings.public_url,
            "client_id": merchant.client_id,
            "client_secret": merchant.client_secret,
            "audience": settings.audience,
            "auth_url": settings.auth_url,
            "pauses": PAUSES,
            **more,
        }
        client = Client(**given) if kind == "blocking" else AsyncClient(**given)
        try:
            with ThreadPoolExecutor(64) as threads:
                yield cls(client, threads)
        finally:
            await client.aclose() if isinstance(client, AsyncClient) else client.close()

    async def __call__(self, name: str, *args: Any, **kwargs: Any) -> Any:
        call: Callable[..., Any] = getattr(self.client, name)
        if isinstance(self.client, AsyncClient):
            return await call(*args, **kwargs)
        return await self._in_a_thread(call, *args, **kwargs)

    async def _in_a_thread(self, call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        whole = functools.partial(call, *args, **kwargs)
        return await asyncio.get_running_loop().run_in_executor(self.threads, whole)

    def events(self, *args: Any, **kwargs: Any) -> AsyncIterator[Event]:
        """Iterate over the events of either client."""
        return self._walk("events", *args, **kwargs)

    def orders(self, *args: Any, **kwargs: Any) -> AsyncIterator[Order]:
        """Iterate over the orders of either client."""
        return self._walk("orders", *args, **kwargs)

    async def _walk(self, name: str, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        walk = getattr(self.client, name)(*args, **kwargs)
        if isinstance(self.client, AsyncClient):
            async for each in walk:
                yield each
            return
        end = object()
        while (each := await self._in_a_thread(next, walk, end)) is not end:
            yield each


@dataclass
class Cutter:
    """A TCP proxy. It calls `lose` with each request's head. If that returns True, the request arrives, but its answer is lost.

    `slow`: seconds by which the answers to a path are delayed. An answer is also kept back while `holds` returns True.
    """

    host: str
    port: int
    url: str = ""
    lose: Callable[[str], bool] = lambda _: False
    holds: Callable[[str], bool] = lambda _: False
    slow: dict[str, float] = field(default_factory=dict)
    # The heads of the requests that came, and of those that the service has answered.
    seen: list[str] = field(default_factory=list)
    answered: list[str] = field(default_factory=list)

    @classmethod
    @asynccontextmanager
    async def to(cls, url: str) -> AsyncIterator[Cutter]:
        parts = urlsplit(url)
        cutter = cls(parts.hostname or "", parts.port or 80)
        server = await asyncio.start_server(cutter._serve, "127.0.0.1", 0)
        cutter.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        try:
            yield cutter
        finally:
            server.close()

    def next_ones(self, path: str, times: int) -> None:
        """Lose the answers to this many requests whose first line contains this text."""
        left = times

        def lose(head: str) -> bool:
            nonlocal left
            hit = path in head.partition("\r\n")[0] and left > 0
            left -= hit
            return hit

        self.lose = lose

    def tries(self, path: str) -> list[str]:
        """Return the heads of the requests whose first line contains this text."""
        return [head for head in self.seen if path in head.partition("\r\n")[0]]

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection of the client. Each request gets a new connection to the service."""
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                self.seen.append(head)
                body = await reader.readexactly(_length(head))
                answer = await self._ask(head, body)
                self.answered.append(head)
                await self._let_go(head)
                await asyncio.sleep(sum(more for path, more in self.slow.items() if path in head))
                if self.lose(head):
                    break
                writer.write(answer)
                await writer.drain()
        writer.close()

    async def _let_go(self, head: str) -> None:
        await until(lambda: not self.holds(head))

    async def _ask(self, head: str, body: bytes) -> bytes:
        reader, writer = await asyncio.open_connection(self.host, self.port)
        writer.write(head.encode("latin-1") + body)
        await writer.drain()
        answer = await reader.readuntil(b"\r\n\r\n")
        answer += await reader.readexactly(_length(answer.decode("latin-1")))
        writer.close()
        return answer


def _length(head: str) -> int:
    lines = (line.partition(":") for line in head.lower().split("\r\n"))
    return next((int(value) for name, _, value in lines if name == "content-length"), 0)


def header(head: str, name: str) -> str | None:
    """Return one header of a request's head."""
    lines = (line.partition(": ") for line in head.split("\r\n"))
    return next((value for found, _, value in lines if found.lower() == name.lower()), None)


async def reason(awaitable: Any, kind: type[BaseException]) -> Any:
    """Return the error that a call raises."""
    try:
        await awaitable
    except kind as error:
        return error
    raise AssertionError(f"no {kind.__name__} was raised")
