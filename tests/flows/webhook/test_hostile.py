"""Hostile receivers: every attempt ends, no resource accumulates, and other receivers are not affected."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import itertools
import struct
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partialmethod

import pytest

from cuota.core.webhook.delivery import Attempt
from cuota.rails import http
from cuota.rails.http import GuardedClient
from support.makers import Merchant, make_merchant
from support.waiting import until
from support.webhook.couriers import Post
from support.webhook.listeners import Hook, Listener, Serve, dead_port, hooked, listening, read_request

BODY = b'{"orderId": "7", "sequence": 1}'
FOREVER = 36_000.0
Act = Callable[[asyncio.StreamWriter], Awaitable[None]]


def after_request(act: Act) -> Serve:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        await act(writer)

    return serve


async def endlessly(writer: asyncio.StreamWriter, first: bytes, piece: bytes, pause: float = 0) -> None:
    writer.write(first)
    while True:
        writer.write(piece)
        await writer.drain()
        await asyncio.sleep(pause)


async def hang(_: asyncio.StreamWriter) -> None:
    await asyncio.Event().wait()


async def never_reads(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await hang(writer)


async def drip_head(writer: asyncio.StreamWriter) -> None:
    await endlessly(writer, b"HTTP/1.1 200 OK\r\nX-Slow: ", b"a", 0.2)


async def drip_body(writer: asyncio.StreamWriter) -> None:
    await endlessly(writer, b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n", b"a", 0.2)


async def endless_body(writer: asyncio.StreamWriter) -> None:
    await endlessly(writer, b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n", b"x" * 65536)


async def endless_chunks(writer: asyncio.StreamWriter) -> None:
    await endlessly(writer, b"HTTP/1.1 500 No\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n" * 1000)


async def huge_headers(writer: asyncio.StreamWriter) -> None:
    await endlessly(writer, b"HTTP/1.1 200 OK\r\n", b"X-Much: " + b"y" * 8000 + b"\r\n")


async def informational(writer: asyncio.StreamWriter) -> None:
    await endlessly(writer, b"", b"HTTP/1.1 103 Early Hints\r\n\r\n" * 100)


async def garbage(writer: asyncio.StreamWriter) -> None:
    writer.write(b"\x16\x03\x01\x00\xff SSH-2.0-nothing \x00\r\n\r\n" * 10)
    await writer.drain()


async def half_head(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Le")
    await writer.drain()


async def reset(writer: asyncio.StreamWriter) -> None:
    linger = struct.pack("ii", 1, 0)
    writer.get_extra_info("socket").setsockopt(1, 13, linger)  # SOL_SOCKET, SO_LINGER: an RST
    writer.transport.abort()


async def bomb(writer: asyncio.StreamWriter) -> None:
    packed = gzip.compress(b"\0" * 50_000_000)
    head = f"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {len(packed)}\r\n\r\n"
    writer.write(head.encode() + packed)
    await writer.drain()


async def no_http(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx")
    await writer.drain()


# The expected result of each attempt: the status, or None if the receiver gave no usable response.
HOSTILE: dict[str, tuple[Serve, int | None]] = {
    "accepts and never answers": (after_request(hang), None),
    "accepts and never reads": (never_reads, None),
    "a head in drips": (after_request(drip_head), None),
    "a body in drips": (after_request(drip_body), 200),
    "a body without end": (after_request(endless_body), 200),
    "chunks without end": (after_request(endless_chunks), 500),
    "headers without end": (after_request(huge_headers), None),
    "interim answers without end": (after_request(informational), None),
    "garbage": (after_request(garbage), None),
    "half a head": (after_request(half_head), None),
    "a reset": (after_request(reset), None),
    "a compressed bomb": (after_request(bomb), 200),
    "two lengths": (after_request(no_http), None),
}


@contextlib.asynccontextmanager
async def sandbox() -> AsyncIterator[GuardedClient]:
    client = GuardedClient(loopback=True)
    try:
        yield client
    finally:
        await client.close()


async def tried(client: GuardedClient, url: str) -> Attempt:
    return await client.post(url, [("Content-Type", "application/json")], BODY)


def assert_ended(attempt: Attempt, status: int | None) -> None:
    assert attempt.status == status
    assert attempt.acknowledged is (status == 200)
    assert (attempt.error is None) is (status is not None)
    assert len(attempt.answer) <= http.KEPT_ANSWER_BYTES


async def test_every_attempt_ends_in_time_and_releases_its_resources() -> None:
    before = asyncio.all_tasks()
    async with contextlib.AsyncExitStack() as stack:
        listeners: dict[str, Listener] = {}
        for name, (serve, _) in HOSTILE.items():
            listeners[name] = await stack.enter_async_context(listening(serve))
        client = await stack.enter_async_context(sandbox())
        # If a receiver could hold an attempt open by sending forever, this test would never end.
        async with asyncio.timeout(120):
            attempts = await asyncio.gather(*(tried(client, listeners[name].url) for name in HOSTILE))
        for (_, status), attempt in zip(HOSTILE.values(), attempts, strict=True):
            assert_ended(attempt, status)
        # The client keeps no connection that did not end properly, and the receivers see these connections close.
        assert client._pool.connections == []
        assert sum(listener.seen for listener in listeners.values()) == len(HOSTILE)
    await until(lambda: asyncio.all_tasks() <= before)


async def test_no_more_than_64_kib_of_an_answer_is_read_and_no_compressed_answer_is_unpacked() -> None:
    async with listening(after_request(endless_body)) as endless, listening(after_request(bomb)) as packed:
        tracemalloc.start()
        try:
            async with sandbox() as client:
                for _ in range(10):
                    attempts = await asyncio.gather(
                        *(tried(client, listener.url) for listener in (endless, packed))
                    )
                    assert all(attempt.status == 200 for attempt in attempts)
            # The sender of the compressed bomb runs in this process and allocates 50 MB itself, so measure the client
            # separately.
            ours = tracemalloc.take_snapshot().filter_traces(
                [tracemalloc.Filter(inclusive=True, filename_pattern="*/cuota/*")]
            )
            assert sum(trace.size for trace in ours.traces) < 5_000_000
        finally:
            tracemalloc.stop()


async def test_a_connection_is_read_at_most_one_block_beyond_the_limit() -> None:
    sent = 0

    async def count(writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 99999999999\r\n\r\n")
        for _ in itertools.count():
            writer.write(b"x" * 4096)
            await writer.drain()
            sent += 4096

    async with listening(after_request(count)) as listener, sandbox() as client:
        attempt = await tried(client, listener.url)
        assert attempt.status == 200
    # The sockets' buffers hold some more bytes. Without the limit, there would be gigabytes.
    assert sent < 32_000_000


async def test_a_dead_port_is_a_failed_attempt_without_waiting_for_the_timeout() -> None:
    with dead_port() as url:
        async with sandbox() as client:
            attempt = await tried(client, url)
            assert_ended(attempt, None)
            assert attempt.error != "no answer in time"


async def test_a_receiver_that_closes_idle_connections_causes_no_failed_attempt() -> None:
    async def once(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await read_request(reader)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()

    async with listening(once) as listener, sandbox() as client:
        for _ in range(5):
            attempt = await tried(client, listener.url)
            assert attempt.acknowledged
            await asyncio.sleep(0.05)
        assert listener.seen == 5


@contextlib.asynccontextmanager
async def fifty(post: Post, merchants: list[Merchant]) -> AsyncIterator[list[Hook]]:
    """Fifty endpoints of five merchants, of which each merchant has one hostile endpoint. Return the healthy
    receivers."""
    hostile = itertools.cycle(
        [
            never_reads,
            after_request(hang),
            after_request(drip_head),
            after_request(endless_body),
            after_request(reset),
        ]
    )
    hooks: list[Hook] = []
    async with contextlib.AsyncExitStack() as stack:
        for merchant in merchants:
            bad = await stack.enter_async_context(listening(next(hostile)))
            await post.register(bad.url, merchant)
            for _ in range(9):
                hook, listener = await stack.enter_async_context(hooked())
                hooks.append(hook)
                await post.register(listener.url, merchant)
        yield hooks


async def worker(post: Post, stop: asyncio.Event) -> None:
    """Run the worker's job at the worker's own interval."""
    from cuota.work.webhooks import Webhooks

    webhooks = Webhooks(post.own.context)
    while not stop.is_set():
        if not await webhooks.run(post.own.context):
            await asyncio.sleep(0.1)
    await webhooks.close()


@pytest.mark.parametrize("orders", [100])
async def test_with_five_hostile_of_fifty_the_healthy_do_not_wait_for_the_hostile(
    post: Post, monkeypatch: pytest.MonkeyPatch, orders: int
) -> None:
    # A hostile receiver holds its attempt to the end of the test, so whatever waited for it would never be sent.
    monkeypatch.setattr(http, "ACKNOWLEDGE_SECONDS", FOREVER)
    monkeypatch.setattr(GuardedClient, "post", partialmethod(GuardedClient.post, seconds=FOREVER))
    async with contextlib.AsyncExitStack() as stack:
        merchants = [await stack.enter_async_context(make_merchant(post.own.service)) for _ in range(5)]
        hooks = await stack.enter_async_context(fifty(post, merchants))
        stop = asyncio.Event()
        sending = asyncio.create_task(worker(post, stop))
        for number in range(orders):
            await merchants[number % len(merchants)].create()
        # An event may come twice on a busy machine, so different events are counted.
        each = orders // len(merchants)
        await until(lambda: all(len({came.body for came in hook.got}) >= each for hook in hooks))
        stop.set()
        await sending
        assert len({came.body for hook in hooks for came in hook.got}) == orders
        assert {len({came.body for came in hook.got}) for hook in hooks} == {orders // len(merchants)}
