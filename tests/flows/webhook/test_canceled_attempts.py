"""An attempt that is canceled, for example because its time is over, closes the connections that it had begun to close."""

from __future__ import annotations

import asyncio
import contextlib
import gc

import pytest

from cuota.rails import http
from cuota.rails.http import GuardedClient
from support.waiting import until
from support.webhook.listeners import listening, read_request


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while True:
        await read_request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")


async def test_a_canceled_attempt_leaves_no_connection_open(monkeypatch: pytest.MonkeyPatch) -> None:
    # Each attempt first closes the connections that have been idle for too long. Cancel it at every moment of that.
    monkeypatch.setattr(http, "IDLE_SECONDS", 0.02)
    async with contextlib.AsyncExitStack() as stack:
        listeners = [await stack.enter_async_context(listening(answer)) for _ in range(4)]
        for turns in range(12):
            client = GuardedClient(loopback=True)
            await asyncio.gather(*(client.post(listener.url, [], b"{}") for listener in listeners[1:]))
            await asyncio.sleep(0.03)
            late = asyncio.create_task(client.post(listeners[0].url, [], b"{}"))
            for _ in range(turns):
                await asyncio.sleep(0)
            late.cancel()
            await asyncio.wait([late])
            await client.close()
        await until(lambda: not any(listener.open for listener in listeners))
    # Python warns about a connection that is garbage and was not closed, and pytest turns the warning into a failure.
    gc.collect()
