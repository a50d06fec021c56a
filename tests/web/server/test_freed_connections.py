"""A closed connection leaves nothing in memory that waits for a garbage collection."""

from __future__ import annotations

import asyncio
import contextlib
import gc
from collections.abc import Iterator

import pytest

from cuota.web.server.protocol import BoundedProtocol
from support.makers import Merchant
from support.waiting import until

ALIVE = b"GET /health/live HTTP/1.1\r\nHost: x\r\n"
CLOSED = b"Connection: close\r\n\r\n"


@pytest.fixture(autouse=True)
def no_collection() -> Iterator[None]:
    """Turn garbage collection off for a test."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def in_memory() -> int:
    return sum(isinstance(each, BoundedProtocol) for each in gc.get_objects())


def sent_by(merchant: Merchant, kind: str) -> list[bytes]:
    """Return what a client sends on its connection, piece by piece."""
    order = f"POST /order HTTP/1.1\r\nHost: x\r\nAuthorization: {merchant.http.headers['authorization']}\r\n".encode()
    return {
        "nothing": [],
        "one request": [ALIVE + CLOSED],
        "two requests": [ALIVE + b"\r\n", ALIVE + CLOSED],
        "two requests at once": [ALIVE + b"\r\n" + ALIVE + CLOSED],
        "a body that is not JSON": [
            order + b"Content-Type: application/json\r\nContent-Length: 3\r\n" + CLOSED + b"..."
        ],
        "half a head": [ALIVE],
        "half a body": [order + b"Content-Length: 3\r\n\r\n."],
        "not HTTP": [b"\x00\r\n\r\n"],
    }[kind]


@pytest.mark.parametrize(
    "kind",
    [
        "nothing", "one request", "two requests", "two requests at once", "a body that is not JSON", "half a head",
        "half a body", "not HTTP",
    ],
)  # fmt: skip
async def test_a_closed_connection_is_freed_at_once(merchant: Merchant, kind: str) -> None:
    port, before = int(merchant.service.settings.public_url.rpartition(":")[2]), in_memory()
    for _ in range(3):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for piece in sent_by(merchant, kind):
            writer.write(piece)
            await asyncio.sleep(0.01)
        if kind in {"nothing", "half a head", "half a body"}:
            writer.close()
        else:
            await reader.read(-1)
            writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()
        del reader, writer
    await until(lambda: in_memory() == before)
