"""Keeps many slow connections open. When the service ends one, a new one is opened at once.

Run as `python -m bench.slow_clients PORT KIND COUNT`, with a token on standard input. Prints `ready` when all
connections are open. At the end of standard input, prints the results as JSON.
"""

from __future__ import annotations

import asyncio
import json
import resource
import select
import socket
import sys
import time
from collections import Counter
from typing import cast

import uvloop

from bench import work

KINDS = ("send nothing", "send half a head", "send half a body", "read nothing")
# The pause between new connections: at first a thousand a second.
PACE = 0.001
LOOK_SECONDS = 0.1
DOCUMENTS = b"GET /openapi.json HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 17


def asked(kind: str, token: str) -> bytes:
    """Return the bytes that a connection of this kind sends."""
    if kind == "send nothing":
        return b""
    if kind == "read nothing":
        return DOCUMENTS
    head, _, body = work.request("create", 0, work.head(token)).partition(b"\r\n\r\n")
    return head[:60] if kind == "send half a head" else head + b"\r\n\r\n" + body[: len(body) // 2]


class Slow(asyncio.Protocol):
    """One slow connection that reads what the service sends."""

    def __init__(self, crowd: Crowd) -> None:
        self.crowd = crowd
        self.told = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.began = time.monotonic()
        self.crowd.open += 1
        cast("asyncio.Transport", transport).write(self.crowd.asked)

    def data_received(self, data: bytes) -> None:
        if not self.told:
            self.told = True
            self.crowd.told[data[9:12].decode()] += 1

    def connection_lost(self, _exc: Exception | None) -> None:
        self.crowd.lost(self.began)


class Crowd:
    """All slow connections."""

    def __init__(self, port: int, kind: str, token: str) -> None:
        self.port, self.kind, self.asked = port, kind, asked(kind, token)
        self.open = self.failed = 0
        self.told: Counter[str] = Counter()
        self.ended: list[float] = []
        self.unread: dict[int, tuple[socket.socket, float]] = {}
        self.resets = select.poll()

    def lost(self, began: float) -> None:
        self.open -= 1
        self.ended.append(time.monotonic() - began)

    async def begin(self) -> None:
        loop = asyncio.get_running_loop()
        peer = socket.socket()
        # With a smaller window, the systems on both sides buffer less of what the connection does not read.
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        peer.setblocking(False)
        try:
            await loop.sock_connect(peer, ("127.0.0.1", self.port))
            if self.kind != "read nothing":
                await loop.create_connection(lambda: Slow(self), sock=peer)
                return
            # Without reading, an event loop does not notice a reset.
            peer.send(self.asked)
            self.unread[peer.fileno()] = peer, time.monotonic()
            self.resets.register(peer, 0)
            self.open += 1
        except OSError:
            self.failed += 1
            peer.close()

    def look(self) -> None:
        """Check whether the service has ended the connections that read nothing: only a poll shows it."""
        for number, _ in self.resets.poll(0):
            self.resets.unregister(number)
            peer, began = self.unread.pop(number)
            peer.close()
            self.lost(began)

    async def keep(self, count: int) -> None:
        ready = False
        while True:
            while self.open < count:
                await self.begin()
                await asyncio.sleep(PACE)
            if not ready:
                ready = True
                print("ready", flush=True)
            await asyncio.sleep(LOOK_SECONDS)
            self.look()

    def found(self) -> dict[str, object]:
        ended = sorted(self.ended)
        shortest, longest = (ended[0], ended[-1]) if ended else (0.0, 0.0)
        return {
            "open": self.open, "failed": self.failed, "told": self.told, "ended": len(ended),
            "shortest": shortest, "longest": longest,
        }  # fmt: skip


async def main() -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    port, kind, count = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
    crowd = Crowd(port, kind, sys.stdin.readline().strip())
    keeping = asyncio.create_task(crowd.keep(count))
    await asyncio.to_thread(sys.stdin.read)
    keeping.cancel()
    print(json.dumps(crowd.found()), flush=True)


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())
