"""Limits of one connection on a raw socket: the number and order of its requests, and its idle time."""

from __future__ import annotations

import asyncio
import contextlib
import resource
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import uvicorn

from cuota.web.server import deadlines
from cuota.web.server.protocol import BoundedProtocol
from support.makers import Merchant, Running
from support.waiting import until

ALIVE = b"GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n"


async def exchange(port: int, content: bytes) -> list[bytes]:
    """Send these bytes and read until the server closes. Return the answers, each with its head and body."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(content)
        async with asyncio.timeout(60):
            said = await reader.read(-1)
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()
    return said.split(b"HTTP/1.1 ")[1:]


def port_of(service: Running) -> int:
    return int(service.settings.public_url.rpartition(":")[2])


async def test_garbage_after_a_request_does_not_affect_the_request_s_answer(service: Running) -> None:
    answers = await exchange(port_of(service), ALIVE + b"\x00\x01\r\n\r\n")
    assert [answer[:6] for answer in answers] == [b"200 OK"]
    assert b"connection: close" in answers[0]


async def test_data_after_an_upgrade_request_is_not_read_as_a_second_request(merchant: Merchant) -> None:
    # The parser gives such a request no body. A proxy that forwards a body would see one request, and the service
    # two.
    head = f"POST /order HTTP/1.1\r\nHost: x\r\nAuthorization: {merchant.http.headers['authorization']}\r\n"
    head += f"Connection: upgrade\r\nUpgrade: h2c\r\nContent-Length: {len(ALIVE)}\r\n\r\n"
    assert len(await exchange(port_of(merchant.service), head.encode() + ALIVE)) == 1
    for late in (False, True):
        reader, writer = await asyncio.open_connection("127.0.0.1", port_of(merchant.service))
        writer.write(head.encode() if late else head.encode() + ALIVE[:9])
        await asyncio.sleep(0.2)
        with contextlib.suppress(ConnectionError):
            writer.write(ALIVE)
            await writer.drain()
        async with asyncio.timeout(60):
            with contextlib.suppress(ConnectionError):
                assert (await reader.read(-1)).count(b"HTTP/1.1 ") == 1
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


async def test_the_second_request_s_head_has_the_same_limit_as_the_first(service: Running) -> None:
    small = ALIVE[:-2] + b"X-A: " + b"a" * 16_000 + b"\r\n\r\n"
    large = ALIVE[:-2] + b"X-A: " + b"a" * 60_000 + b"\r\n\r\n"
    answers = await exchange(port_of(service), ALIVE + small + small + large)
    assert [answer[:3] for answer in answers[:3]] == [b"200"] * 3
    assert all(answer[:3] == b"431" for answer in answers[3:])
    assert not any(b"200" in answer[:3] for answer in answers[3:])


LARGE = 32 * 1024 * 1024


class Answering:
    """A small application on the service's own protocol.

    It answers 200, and records the requests and whether they were complete.
    """

    def __init__(self) -> None:
        self.asked = 0
        self.whole: list[str] = []

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Any) -> None:
        self.asked += 1
        path = scope["path"]
        if path == "/early":
            await self._answer(send, 413, b"")
            return
        message = await receive()
        while message["type"] == "http.request" and message["more_body"]:
            message = await receive()
        if message["type"] == "http.request":
            self.whole.append(path)
            await asyncio.sleep(1.5 if path == "/slow" else 0)
            await self._answer(send, 200, bytes(LARGE if path == "/large" else 0))

    async def _answer(self, send: Any, status: int, body: bytes) -> None:
        length = [(b"content-length", str(len(body)).encode())]
        await send({"type": "http.response.start", "status": status, "headers": length})
        await send({"type": "http.response.body", "body": body})


@asynccontextmanager
async def answering(app: Answering) -> AsyncIterator[tuple[int, deadlines.Watch]]:
    """Yield the port, and the watch over the connections. Idle connections end after 2 seconds."""
    config = uvicorn.Config(
        app, port=0, http=BoundedProtocol, ws="none", lifespan="off", log_config=None, timeout_keep_alive=2
    )
    server = uvicorn.Server(config)
    task = asyncio.create_task(server._serve())
    while not server.started:  # noqa: ASYNC110 - uvicorn says so by a flag only
        await asyncio.sleep(0.01)
    watch = deadlines.watch_of(server.server_state, asyncio.get_running_loop())
    try:
        yield server.servers[0].sockets[0].getsockname()[1], watch
    finally:
        server.should_exit = True
        await task


async def test_an_idle_connection_is_closed_without_an_answer_after_its_timeout() -> None:
    async with answering(Answering()) as (port, _):
        began = time.monotonic()
        assert len(await exchange(port, ALIVE)) == 1
        assert time.monotonic() - began >= 2


@pytest.mark.parametrize("more", [b"\r\n", b"GET /he"])
async def test_data_after_a_request_in_the_same_packet_is_the_head_of_the_next_request(more: bytes) -> None:
    async with answering(Answering()) as (port, watch):
        waiting = asyncio.create_task(exchange(port, ALIVE + more))
        await asyncio.sleep(0.3)
        watch.ticks += deadlines.HEAD_TICKS
        statuses = [answer[:3] for answer in await waiting]
        # A line feed does not begin a request: the idle connection ends without an answer.
        assert statuses == ([b"200", b"408"] if more.strip() else [b"200"])


async def test_line_feeds_do_not_keep_a_connection_open() -> None:
    async with answering(Answering()) as (port, watch):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(ALIVE)
        assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
        for _ in range(3):
            writer.write(b"\r\n")
            await asyncio.sleep(0.1)
            watch.ticks += deadlines.HEAD_TICKS // 2
        async with asyncio.timeout(60):
            assert (await reader.read(-1)).startswith(b"HTTP/1.1 408")
        writer.close()


async def test_an_answer_before_the_end_of_the_body_is_the_last_one_of_the_connection() -> None:
    async with answering(Answering()) as (port, watch):
        head = b"POST /early HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n"
        waiting = asyncio.create_task(exchange(port, head + b"half"))
        await asyncio.sleep(0.3)
        watch.ticks += deadlines.BODY_TICKS
        assert [answer[:3] for answer in await waiting] == [b"413"]


HALF = b"POST /half HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\nha"


async def test_a_request_in_progress_is_answered_even_if_the_next_one_is_late() -> None:
    app = Answering()
    async with answering(app) as (port, watch):
        waiting = asyncio.create_task(exchange(port, ALIVE.replace(b"/health/live", b"/slow") + HALF))
        await asyncio.sleep(0.3)
        watch.ticks += 10 * deadlines.BODY_TICKS
        assert [answer[:3] for answer in await waiting] == [b"200", b"408"]
        assert app.whole == ["/slow"]


async def test_for_a_client_that_reads_nothing_no_further_request_is_started() -> None:
    app = Answering()
    async with answering(app) as (port, _):
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1024)
        writer.write(ALIVE.replace(b"/health/live", b"/large") * 3)
        await until(lambda: app.asked)
        await asyncio.sleep(1)  # time in which a second request would begin
        assert app.asked == 1
        async with asyncio.timeout(60):
            for _ in range(3):
                head = await reader.readuntil(b"\r\n\r\n")
                assert head.startswith(b"HTTP/1.1 200")
                await reader.readexactly(LARGE)
        assert app.asked == 3
        writer.close()


async def test_time_during_which_the_process_was_stopped_does_not_count_toward_a_deadline() -> None:
    async with answering(Answering()) as (port, watch):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.write(HALF)
        await asyncio.sleep(0.6)
        seen = watch.ticks
        # As after a SIGSTOP, the event loop does not run for three seconds while the rest arrives.
        writer.write(b"lf")
        time.sleep(3)  # noqa: ASYNC251 - standing still is the case
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        # Each tick of the three seconds would be one more, if they were counted afterwards.
        assert watch.ticks - seen < 3 / deadlines.TICK_SECONDS
        writer.close()


@pytest.mark.parametrize("files", [100, 400, 700])
async def test_with_a_low_limit_of_open_files_some_connections_are_still_accepted(files: int) -> None:
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, before[1]))
    try:
        most = deadlines.Watch(asyncio.get_running_loop(), set()).most_open
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    assert files // 2 <= most < files


async def test_a_connection_above_the_maximum_gets_an_error_before_any_work_and_the_others_continue() -> None:
    app = Answering()
    async with answering(app) as (port, watch):
        watch.most_open = 2
        kept = [await asyncio.open_connection("127.0.0.1", port) for _ in range(2)]
        await asyncio.sleep(0.1)
        (told,) = await exchange(port, ALIVE)
        head, _, text = told.partition(b"\r\n\r\n")
        assert head.startswith(b"503 ")
        assert b"\r\nretry-after: 1" in head
        assert b"\r\nconnection: close" in head
        assert (
            text
            == b"The service has reached its limit of open connections. Nothing was applied. Try again shortly.\n"
        )
        assert app.asked == 0
        assert await exchange(port, b"") == []  # the server closes an idle connection within seconds
        for reader, writer in kept:
            writer.write(ALIVE)
            assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        kept[0][1].close()
        await until(lambda: len(watch._connections) == 1)
        assert [answer[:3] for answer in await exchange(port, ALIVE)] == [b"200"]
        kept[1][1].close()
