"""A receiver of webhooks on loopback. It answers each webhook as the test says, and stores it."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

Answer = Callable[[dict[str, Any]], Awaitable[int]]


async def fine(event: dict[str, Any]) -> int:
    del event
    return 200


@dataclass
class Receiver:
    url: str = ""
    answer: Answer = fine
    got: list[tuple[dict[str, str], dict[str, Any]]] = field(default_factory=list)

    @property
    def types(self) -> list[str]:
        return [event["type"] for _, event in self.got]

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")[1:-2]
            headers = {
                name.lower(): value.strip() for name, _, value in (line.partition(":") for line in head)
            }
            event = json.loads(await reader.readexactly(int(headers["content-length"])))
            self.got.append((headers, event))
            status = await self.answer(event)
            writer.write(f"HTTP/1.1 {status} So\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode())
            await writer.drain()
        writer.close()


@contextlib.asynccontextmanager
async def receiving(answer: Answer = fine) -> AsyncIterator[Receiver]:
    receiver = Receiver(answer=answer)
    server = await asyncio.start_server(receiver.take, "127.0.0.1", 0)
    receiver.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/hook"
    async with server:
        yield receiver


def callback(url: str) -> dict[str, Any]:
    """Return the part of an order's body that names the receiver of its events."""
    merchant = {
        "redirectConfirmUrl": "http://127.0.0.1:9/yes",
        "redirectCancelUrl": "http://127.0.0.1:9/no",
        "statusCallbackUrl": url,
    }
    return {"merchant": merchant}
