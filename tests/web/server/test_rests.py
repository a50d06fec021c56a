"""Rests: a connection on which several requests in a row were refused is not read for a moment, and then as before."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import uvicorn

from cuota.web.server import deadlines, rests
from cuota.web.server.protocol import BoundedProtocol
from support.server.crowd import Clock

ASK = b"POST /order HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}"
REFUSAL = b"HTTP/1.1 503 Service Unavailable\r\ncontent-length: 0\r\n\r\n"


class Choosing:
    """A small application that refuses at once while `refusing`, and otherwise answers in a task."""

    refusing = True
    asked = 0

    def refuse_at_once(self, scope: Any, fields: Any) -> bytes | None:
        self.asked += 1
        return REFUSAL if self.refusing else None

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"0")]})
        await send({"type": "http.response.body", "body": b""})


class Served:
    """A server whose rests end when the test moves the clock."""

    def __init__(self, app: Choosing, server: uvicorn.Server) -> None:
        self.app, self.server, self.clock = app, server, Clock()
        self.rests = rests.rests_of(server.server_state, asyncio.get_running_loop())
        self.rests.clock = self.clock
        self.reader: asyncio.StreamReader
        self.writer: asyncio.StreamWriter

    async def connect(self) -> None:
        port = self.server.servers[0].sockets[0].getsockname()[1]
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", port)

    async def statuses(self, count: int) -> list[bytes]:
        """The statuses of the next answers."""
        async with asyncio.timeout(60):
            heads = [await self.reader.readuntil(b"\r\n\r\n") for _ in range(count)]
        return [head.split()[1] for head in heads]

    async def refused(self, count: int) -> None:
        for _ in range(count):
            self.writer.write(ASK)
            assert await self.statuses(1) == [b"503"]

    @property
    def connection(self) -> Any:
        (only,) = self.server.server_state.connections
        return only

    @property
    def reads(self) -> bool:
        return not self.connection.flow.read_paused

    async def all_rested(self) -> None:
        async with asyncio.timeout(60):
            while self.rests._ending:
                self.clock.now += rests.TICK_SECONDS
                await asyncio.sleep(0.005)


@asynccontextmanager
async def served() -> AsyncIterator[Served]:
    app = Choosing()
    config = uvicorn.Config(
        app, port=0, http=BoundedProtocol, ws="none", lifespan="off", log_config=None, proxy_headers=False
    )
    server = uvicorn.Server(config)
    task = asyncio.create_task(server._serve())
    while not server.started:  # noqa: ASYNC110 - uvicorn says so by a flag only
        await asyncio.sleep(0.01)
    made = Served(app, server)
    try:
        await made.connect()
        yield made
    finally:
        server.should_exit = True
        async with asyncio.timeout(60):
            await task
        made.writer.close()


def test_each_refusal_in_a_row_doubles_the_rest_up_to_a_tenth_of_what_the_client_was_told_to_wait() -> None:
    lengths = [rests.ticks_after(refused) for refused in range(9)]
    assert lengths == [0, 0, 1, 2, 4, 5, 5, 5, 5]
    assert rests.ticks_after(10**9) == rests.LONGEST_TICKS


async def test_a_client_that_sends_on_after_a_refusal_is_not_read_until_the_rest_is_over() -> None:
    async with served() as it:
        await it.refused(1)
        assert it.reads, "one refusal is no flood"
        await it.refused(1)
        assert not it.reads
        it.writer.write(ASK)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(it.reader.read(1), 0.2)
        assert it.app.asked == 2
        await it.all_rested()
        assert await it.statuses(1) == [b"503"]


async def test_a_request_that_is_started_ends_the_row() -> None:
    async with served() as it:
        await it.refused(2)
        await it.all_rested()
        it.app.refusing = False
        it.writer.write(ASK)
        assert await it.statuses(1) == [b"200"]
        it.app.refusing = True
        await it.refused(1)
        assert it.reads


async def test_requests_in_one_packet_are_each_answered_once_and_the_longest_rest_counts() -> None:
    async with served() as it:
        it.writer.write(ASK * 6)
        assert await it.statuses(6) == [b"503"] * 6
        assert not it.reads
        it.clock.now += rests.TICK_SECONDS * 1.5
        async with asyncio.timeout(60):
            while len(it.rests._ending) == rests.ticks_after(6):  # noqa: ASYNC110 - a timer, which sets no event
                await asyncio.sleep(0.005)
        assert not it.reads
        await it.all_rested()
        assert it.reads
        await it.refused(1)


async def test_a_body_that_arrives_during_a_rest_is_skipped_and_the_next_request_is_read() -> None:
    async with served() as it:
        await it.refused(1)
        it.writer.write(ASK[:-1])
        assert await it.statuses(1) == [b"503"]
        it.writer.write(ASK[-1:] + ASK)
        await it.all_rested()
        assert await it.statuses(1) == [b"503"]
        assert it.app.asked == 3


async def test_a_request_behind_refused_ones_in_the_same_packet_is_answered_without_a_wait_for_the_rest() -> (
    None
):
    async with served() as it:
        asks, refuse = it.app, it.app.refuse_at_once
        asks.refuse_at_once = lambda scope, fields: refuse(scope, fields) if asks.asked < 4 else None  # type: ignore[method-assign]
        it.writer.write(ASK * 5)
        assert await it.statuses(5) == [b"503"] * 4 + [b"200"]
        await it.all_rested()
        assert it.reads


async def test_a_client_that_leaves_during_a_rest_is_noticed_when_the_rest_is_over() -> None:
    async with served() as it:
        await it.refused(2)
        it.writer.close()
        await it.all_rested()
        async with asyncio.timeout(60):
            while it.server.server_state.connections:  # noqa: ASYNC110 - asked of a set, which sets no event
                await asyncio.sleep(0.005)


async def test_a_rest_holds_up_no_shutdown() -> None:
    async with served() as it:
        await it.refused(2)
        assert not it.reads
        it.server.should_exit = True
        async with asyncio.timeout(60):
            assert await it.reader.read(-1) == b""
    assert it.rests._ending, "the clock stood, so the rest was not over"


async def test_a_rest_does_not_make_a_connection_idle_or_late() -> None:
    async with served() as it:
        await it.refused(2)
        watch = deadlines.watch_of(it.server.server_state, asyncio.get_running_loop())
        assert it.connection._since >= watch.ticks - 1, (
            "the time of an idle connection begins with the answer"
        )
        it.connection.judge()
        assert not it.connection.transport.is_closing()
