"""Clients that are slow on purpose. Each reports when its connection ended, and what the server had sent until then."""

from __future__ import annotations

import asyncio
import contextlib
import select
import socket
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

# Only ends a test that hangs. The server's deadlines are 10 and 15 seconds, and a busy machine may be late by more than that.
PATIENCE = 240.0


@dataclass(frozen=True)
class Ending:
    """`seconds` since the start of the connection; `said` is all that the server sent; `sent` is what the client sent."""

    seconds: float
    said: bytes
    sent: int = 0

    @property
    def status(self) -> int:
        """The status of the first answer, or 0 without an answer."""
        return int(self.said.split(b" ", 2)[1]) if self.said else 0


Send = Callable[[asyncio.StreamWriter], Awaitable[None]]


async def _until_closed(port: int, send: Send, answered: asyncio.Event | None = None) -> Ending:
    """Connect, run the client's action, and read until the server closes. `answered` is set at the first byte from the server."""
    began, said = time.monotonic(), b""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    sending = asyncio.create_task(_sent(send, writer))
    try:
        async with asyncio.timeout(PATIENCE):
            with contextlib.suppress(ConnectionError):
                while part := await reader.read(65536):
                    said += part
                    if answered is not None:
                        answered.set()
        return Ending(time.monotonic() - began, said)
    finally:
        sending.cancel()
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


async def _sent(send: Send, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(ConnectionError):
        await send(writer)


async def say(port: int, content: bytes) -> Ending:
    """Send these bytes at once, and nothing more."""

    async def send(writer: asyncio.StreamWriter) -> None:
        writer.write(content)

    return await _until_closed(port, send)


async def trickle(port: int, first: bytes, then: bytes) -> Ending:
    """Send the first part, then one byte a second."""

    async def send(writer: asyncio.StreamWriter) -> None:
        writer.write(first)
        for at in range(len(then)):
            await asyncio.sleep(1)
            writer.write(then[at : at + 1])
            await writer.drain()

    return await _until_closed(port, send)


async def late(port: int, first: bytes, then: bytes) -> Ending:
    """Send the first part, and the rest when the server has answered: on a busy machine, its deadline may end seconds later."""
    answered = asyncio.Event()

    async def send(writer: asyncio.StreamWriter) -> None:
        writer.write(first)
        await answered.wait()
        writer.write(then)

    return await _until_closed(port, send, answered)


async def flood(port: int, first: bytes, again: bytes, most: int) -> Ending:
    """Send the first part, then the other part again and again as fast as possible, endlessly or up to a number of bytes."""
    sent = 0

    async def send(writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(first)
        while sent < most:
            writer.write(again)
            await writer.drain()
            sent += len(again)

    ending = await _until_closed(port, send)
    return Ending(ending.seconds, ending.said, sent)


async def read_nothing(port: int, asked: bytes) -> Ending:
    """Request a large answer and read none of it. Ends when the server resets the connection."""
    loop = asyncio.get_running_loop()
    with socket.socket() as peer:
        # With a smaller window, the systems on both sides buffer less of what the client does not read.
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        peer.setblocking(False)
        began = time.monotonic()
        await loop.sock_connect(peer, ("127.0.0.1", port))
        await loop.sock_sendall(peer, asked)
        gone = select.poll()
        gone.register(peer, 0)
        async with asyncio.timeout(PATIENCE):
            while not gone.poll(0):  # noqa: ASYNC110 - whoever reads nothing is told of an end by asking only
                await asyncio.sleep(0.1)
        return Ending(time.monotonic() - began, b"")
