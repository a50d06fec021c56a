"""Servers for outgoing calls to reach: well-behaved and hostile listeners on real loopback sockets."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from support.waiting import until

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@dataclass
class Listener:
    """A listener's port, and how many connections it has had and has open."""

    port: int = 0
    seen: int = 0
    open: int = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/hooks"


@contextlib.asynccontextmanager
async def listening(
    serve: Serve, host: str = "127.0.0.1", tls: ssl.SSLContext | None = None
) -> AsyncIterator[Listener]:
    """Start a listener on a free port. At the end of the block, all of its connections are closed."""
    listener, under_way = Listener(), set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        under_way.add(asyncio.current_task())
        listener.seen += 1
        listener.open += 1
        try:
            await serve(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, ssl.SSLError, asyncio.CancelledError):
            pass  # the client has disconnected, or the test is over
        finally:
            listener.open -= 1
            writer.transport.abort()
            under_way.discard(asyncio.current_task())

    server = await asyncio.start_server(connected, host, 0, ssl=tls)
    listener.port = server.sockets[0].getsockname()[1]
    try:
        yield listener
    finally:
        server.close()
        ending = [task for task in under_way if task is not None]
        for task in ending:
            task.cancel()
        await asyncio.gather(*ending, return_exceptions=True)
        await asyncio.sleep(0.01)  # the event loop closes the sockets of aborted connections one turn later


async def read_request(reader: asyncio.StreamReader) -> tuple[dict[str, str], bytes]:
    """Read one request, and return its headers (lower-case names) and body."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
    pairs = (line.partition(":") for line in head[1:] if line)
    headers = {name.lower(): value.strip() for name, _, value in pairs}
    return headers, await reader.readexactly(int(headers["content-length"]))


@dataclass
class Came:
    """One received webhook, with the event loop's time of its arrival."""

    headers: dict[str, str]
    body: bytes
    at: float

    @property
    def event(self) -> dict[str, Any]:
        return dict(json.loads(self.body))


@dataclass
class Hook:
    """Stores what arrives. Answers with the statuses of `answers` in turn, then with `status`, after a pause.

    The answer to the n-th one is not given while `holds(n)` is true. A try that waits 10 seconds for its answer has failed.
    """

    status: int = 200
    answers: list[int] = field(default_factory=list)
    headers: str = ""
    body: bytes = b"seen"
    pause: Callable[[], float] = lambda: 0.0
    holds: Callable[[int], bool] = lambda number: False
    got: list[Came] = field(default_factory=list)
    # Order, sequence and status of each answer that was sent.
    gave: list[tuple[str, int, int]] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            headers, body = await read_request(reader)
            came = Came(headers, body, asyncio.get_running_loop().time())
            self.got.append(came)
            await asyncio.gather(asyncio.sleep(self.pause()), self._let_go(len(self.got)))
            status = self.answers.pop(0) if self.answers else self.status
            self.gave.append((came.event["orderId"], came.event["sequence"], status))
            length = f"Content-Length: {len(self.body)}\r\n"
            writer.write(f"HTTP/1.1 {status} So\r\n{length}{self.headers}\r\n".encode() + self.body)
            await writer.drain()

    async def _let_go(self, number: int) -> None:
        await until(lambda: not self.holds(number))

    @property
    def sequences(self) -> list[int]:
        return [came.event["sequence"] for came in self.got]


@contextlib.asynccontextmanager
async def hooked(**more: Any) -> AsyncIterator[tuple[Hook, Listener]]:
    """Start a listener that receives webhooks."""
    hook = Hook(**more)
    async with listening(hook.serve) as listener:
        yield hook, listener


@contextlib.contextmanager
def dead_port() -> Iterator[str]:
    """Return an address at which nobody listens. The port is reserved, so no other program can listen there."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        yield f"http://127.0.0.1:{taken.getsockname()[1]}/hooks"
