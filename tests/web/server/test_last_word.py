"""The last answer of a connection, and an answer before the body is read. Later bytes are never read as a new
request."""

from __future__ import annotations

import asyncio
import json
from uuid import UUID

import pytest

from cuota.web.server import last_word
from cuota.web.server.last_word import Refusal, answer_of
from support.makers import Merchant, Running, order_body
from support.server.crowd import busy, port_of

REFUSALS = [value for value in vars(last_word).values() if isinstance(value, Refusal)]


def request_id(answer: bytes) -> UUID:
    head = answer.partition(b"\r\n\r\n")[0].decode().lower()
    (found,) = [line.partition(": ")[2] for line in head.splitlines() if line.startswith("x-request-id:")]
    return UUID(found)


@pytest.mark.parametrize("refusal", REFUSALS, ids=lambda refusal: refusal.reason)
def test_each_last_answer_has_its_own_request_id_and_a_503_has_retry_after(refusal: Refusal) -> None:
    answers = [answer_of(refusal, [(b"date", b"today")]) for _ in range(2)]
    assert request_id(answers[0]) != request_id(answers[1])
    assert all((b"\r\nretry-after: 1\r\n" in one) == refusal.status.startswith("503") for one in answers)


async def until_closed(service: Running, *packets: bytes) -> bytes:
    """Return everything that the server sends until it closes the connection, which it must do at once."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port_of(service))
    try:
        for packet in packets:
            writer.write(packet)
            await asyncio.sleep(0.05)
        async with asyncio.timeout(60):
            return await reader.read(-1)
    finally:
        writer.close()


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        (b"GET /order HTTP/1.1\r\nHost: x\r\nX-A : b\r\n\r\n", b"400"),
        (b"GET / HTTP/1.1\r\nX-A: " + b"a" * 40_000, b"431"),
    ],
)
async def test_an_unreadable_request_is_answered_with_a_request_id_too(
    service: Running, asked: bytes, status: bytes
) -> None:
    said = await until_closed(service, asked)
    assert said.startswith(b"HTTP/1.1 " + status)
    assert request_id(said).version == 7


@pytest.mark.parametrize("hosts", [b"", b"Host: x\r\nHost: y\r\n"])
async def test_under_overload_too_a_request_with_no_host_or_two_hosts_ends_its_connection(
    service: Running, hosts: bytes
) -> None:
    with busy(service, 1):
        said = await until_closed(service, b"GET /order HTTP/1.1\r\n" + hosts + b"\r\n")
    assert said.startswith(b"HTTP/1.1 503 ")
    assert b"\r\nconnection: close\r\n" in said


def awaiting(merchant: Merchant, length: int) -> bytes:
    """Return the head of a `POST /order` whose client waits for a 100 before it sends the body."""
    head = f"POST /order HTTP/1.1\r\nHost: x\r\nAuthorization: {merchant.http.headers['authorization']}\r\n"
    head += f"Content-Type: application/json\r\nExpect: 100-continue\r\nContent-Length: {length}\r\n\r\n"
    return head.encode()


@pytest.mark.parametrize("case", ["too busy", "too large", "no token"])
async def test_if_a_client_that_waits_to_send_its_body_is_refused_the_connection_is_closed(
    merchant: Merchant, case: str
) -> None:
    # The server does not read what the client sends now, because a body could be mistaken for a new request.
    head = awaiting(merchant, 10**9 if case == "too large" else 60)
    if case == "no token":
        head = head.replace(b"Bearer ", b"Bearer x")
    with busy(merchant.service, 1 if case == "too busy" else 0):
        said = await until_closed(merchant.service, head)
    assert said.startswith(
        {"too busy": b"HTTP/1.1 503", "too large": b"HTTP/1.1 413", "no token": b"HTTP/1.1 401"}[case]
    )
    assert said.count(b"HTTP/1.1 ") == 1
    assert b"\r\nconnection: close\r\n" in said


async def test_a_client_that_gets_a_100_continue_can_keep_the_connection(merchant: Merchant) -> None:
    body = json.dumps(order_body()).encode()
    reader, writer = await asyncio.open_connection("127.0.0.1", port_of(merchant.service))
    for _ in range(2):
        writer.write(awaiting(merchant, len(body)))
        assert await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 60) == b"HTTP/1.1 100 Continue\r\n\r\n"
        writer.write(body)
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 60)
        assert head.startswith(b"HTTP/1.1 200 ")
        assert b"connection: close" not in head
        length = int(head.partition(b"content-length: ")[2].partition(b"\r\n")[0])
        assert json.loads(await reader.readexactly(length))["orderId"]
    writer.close()
