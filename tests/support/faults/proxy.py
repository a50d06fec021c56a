"""A small TCP proxy that delays, cuts, resets and drops connections like a bad network, determined by a seed."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from dataclasses import dataclass, field
from random import Random
from typing import Self

# The disturbances of one request or answer, and how often each occurs. Everything else passes unchanged.
MISHAPS = {
    "delay": 0.06,  # it arrives late, perhaps after the receiver's timeout
    "cut": 0.03,  # the connection is closed normally, and the message is lost
    "reset": 0.04,  # the connection is reset, and the message is lost
    "half": 0.02,  # a part of the message passes, then the connection is reset
    "swallow": 0.02,  # the message is lost, and only a timeout reveals it
}
LONGEST_DELAY = 0.6


@dataclass
class Proxy:
    """Listens on its own port. With `calm`, everything passes. `happened` counts the disturbances by direction and name."""

    target: int
    seed: int
    calm: bool = False
    port: int = 0
    happened: dict[str, int] = field(default_factory=dict)
    _connections: int = 0
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._take, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        # Give the event loop a few turns to close the connections.
        await asyncio.sleep(0.05)

    def cut(self) -> None:
        """Close every connection now."""
        for task in self._tasks:
            task.cancel()

    def _take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections += 1
        task = asyncio.create_task(self._serve(reader, writer, Random(f"{self.seed} {self._connections}")))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, chance: Random
    ) -> None:
        try:
            there, back = await asyncio.open_connection("127.0.0.1", self.target)
        except OSError:
            _reset(writer)
            return
        ways = (
            asyncio.create_task(self._pass(reader, back, chance, "request")),
            asyncio.create_task(self._pass(there, writer, chance, "answer")),
        )
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)
            for end in (writer, back):
                end.close()

    async def _pass(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, chance: Random, way: str
    ) -> None:
        with contextlib.suppress(OSError):
            while data := await source.read(65536):
                mishap = None if self.calm else _drawn(chance)
                if mishap is not None:
                    name = f"{way} {mishap}"
                    self.happened[name] = self.happened.get(name, 0) + 1
                if mishap == "swallow":
                    continue
                if mishap == "delay":
                    await asyncio.sleep(chance.uniform(0.005, LONGEST_DELAY))
                if mishap == "half":
                    sink.write(data[: len(data) // 2])
                    await sink.drain()
                if mishap in {"half", "reset"}:
                    _reset(sink)
                if mishap in {"half", "reset", "cut"}:
                    return
                sink.write(data)
                await sink.drain()


def _drawn(chance: Random) -> str | None:
    drawn = chance.random()
    for name, share in MISHAPS.items():
        drawn -= share
        if drawn < 0:
            return name
    return None


def _reset(writer: asyncio.StreamWriter) -> None:
    """End a connection by RST: data that was on its way is lost."""
    sock = writer.get_extra_info("socket")
    with contextlib.suppress(OSError):
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
