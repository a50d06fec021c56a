"""Broken HTTP on a raw socket, which the server refuses before there is a request (rows H01, H02 and H04 of
bad_inputs.csv)."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from support.makers import Merchant, Running
from support.server.smuggled import HEAD, SMUGGLED


async def say(service: Running, content: bytes, *, to_the_end: bool) -> bytes:
    """Return the first line of the answer. `to_the_end` waits until the server closes the connection."""
    port = int(service.settings.public_url.rpartition(":")[2])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(content)
        async with asyncio.timeout(60):
            answer = await reader.read(-1) if to_the_end else await reader.readline()
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()
    return answer.partition(b"\r\n")[0]


@pytest.mark.parametrize("row", SMUGGLED)
async def test_a_request_that_two_servers_could_read_differently_is_refused_and_the_connection_closed(
    service: Running, row: str
) -> None:
    assert await say(service, SMUGGLED[row], to_the_end=True) == b"HTTP/1.1 400 Bad Request"


@pytest.mark.parametrize("length", [262_145, 10_737_418_240])
@pytest.mark.parametrize("expect", ["", "Expect: 100-continue\r\n"])
async def test_a_body_declared_too_large_is_refused_before_it_is_sent(
    merchant: Merchant, length: int, expect: str
) -> None:
    token = f"Authorization: {merchant.http.headers['authorization']}\r\nContent-Type: application/json\r\n"
    head = HEAD.decode() + token + expect + f"Content-Length: {length}\r\n\r\n"
    # The client sends no byte of the body, and the server sends no 100 first.
    first = await say(merchant.service, head.encode(), to_the_end=False)
    assert first.startswith(b"HTTP/1.1 413 ")


@pytest.mark.parametrize("head", [b"X-A: " + b"a" * 70_000, b"X-A: b\r\n" * 9_000])
async def test_a_head_has_a_maximum_size_whatever_it_contains(service: Running, head: bytes) -> None:
    said = await say(service, b"GET /health/live HTTP/1.1\r\nHost: x\r\n" + head, to_the_end=True)
    assert said == b"HTTP/1.1 431 Request Header Fields Too Large"


async def test_a_large_body_after_a_small_head_is_not_counted_as_a_head(service: Running) -> None:
    body = b" " * 200_000
    said = await say(service, HEAD + b"Content-Length: 200000\r\n\r\n" + body, to_the_end=False)
    assert said == b"HTTP/1.1 401 Unauthorized"


@pytest.mark.parametrize(
    "path", [b"/order/" + b"a" * 9_000, b"/order?a=" + b"b" * 9_000, b"/" + b"a" * 60_000]
)
async def test_an_address_over_8_kib_is_414(service: Running, path: bytes) -> None:
    said = await say(service, b"GET " + path + b" HTTP/1.1\r\nHost: x\r\n\r\n", to_the_end=True)
    assert said == b"HTTP/1.1 414 URI Too Long"


async def test_a_head_within_its_limits_is_accepted(service: Running) -> None:
    most = b"".join(b"X-%d: %b\r\n" % (number, b"a" * 150) for number in range(98))
    head = (
        b"GET /health/live?"
        + b"a" * 8_000
        + b" HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
        + most
        + b"\r\n"
    )
    assert await say(service, head, to_the_end=True) == b"HTTP/1.1 200 OK"


@pytest.mark.parametrize(
    "head", [b"X: a\r\n" * 100, b"X-A: " + b"a" * 16_400 + b"\r\n", (b"X-A: " + b"a" * 165 + b"\r\n") * 98]
)
async def test_more_than_100_header_fields_or_16_kib_of_them_are_431(service: Running, head: bytes) -> None:
    said = await say(service, b"GET /health/live HTTP/1.1\r\nHost: x\r\n" + head + b"\r\n", to_the_end=True)
    assert said == b"HTTP/1.1 431 Request Header Fields Too Large"


@pytest.mark.parametrize("kind", ["length", "chunked"])
async def test_a_413_answer_reaches_a_client_that_is_still_sending_and_closes_the_connection(
    merchant: Merchant, kind: str
) -> None:
    """The client is still sending two megabytes. If the server simply closed, the connection would be reset before the
    client reads the answer."""
    head = (
        HEAD
        + f"Authorization: {merchant.http.headers['authorization']}\r\nContent-Type: application/json\r\n".encode()
    )
    chunk = b"10000\r\n" + b" " * 65536 + b"\r\n"
    if kind == "chunked":
        content = head + b"Transfer-Encoding: chunked\r\n\r\n" + chunk * 30 + b"0\r\n\r\n"
    else:
        content = head + b"Content-Length: 2000000\r\n\r\n" + b" " * 2_000_000
    port = int(merchant.service.settings.public_url.rpartition(":")[2])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    async with asyncio.timeout(60):
        writer.write(content)
        with contextlib.suppress(ConnectionError):
            await writer.drain()
        answer = await reader.read(-1)
    writer.close()
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"connection: close" in answer.lower()
    # There is exactly one answer, so the later bytes were not read as a request.
    assert answer.count(b"HTTP/1.1 ") == 1
