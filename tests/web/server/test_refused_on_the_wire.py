"""Requests that are refused for lack of a place, byte by byte: each is read to its end and answered once."""

from __future__ import annotations

import asyncio
import json

import pytest

from support.makers import Running
from support.server.crowd import busy, port_of


@pytest.mark.parametrize(
    "other",
    [
        # For a parser that joins a folded line with the previous line, the body is longer and contains the next
        # request.
        b"POST /order HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n 1\r\n\r\nabc",
        # For a parser that accepts a bare line feed as the end of a line, these are two requests.
        b"GET /order HTTP/1.1\r\nHost: x\r\nX-A: b\n\nGET /order HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /order HTTP/1.1\r\nHost: x\r\nX-A : b\r\n\r\n",
    ],
)
async def test_under_overload_too_a_request_that_other_servers_could_read_differently_ends_its_connection(
    service: Running, other: bytes
) -> None:
    with busy(service, 1):
        reader, writer = await asyncio.open_connection("127.0.0.1", port_of(service))
        writer.write(other)
        async with asyncio.timeout(60):
            said = await reader.read(-1)
        writer.close()
    assert said.startswith(b"HTTP/1.1 400 ")
    assert said.count(b"HTTP/1.1 ") == 1


async def status_of(reader: asyncio.StreamReader) -> bytes:
    """Read one answer, and return its status."""
    head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 60)
    await reader.readexactly(int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0]))
    return head.split()[1]


async def answers_to(service: Running, *packets: bytes) -> list[bytes]:
    """Send these packets, and return the statuses of all answers."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port_of(service))
    for packet in packets:
        writer.write(packet)
        await asyncio.sleep(0.005)
    statuses = [await status_of(reader) for _ in range(b"".join(packets).count(b" HTTP/1.1\r\n"))]
    writer.close()
    assert await reader.read(-1) == b""
    return statuses


async def test_two_requests_are_two_wherever_packets_are_split_and_the_body_is_never_read_as_a_third(
    service: Running,
) -> None:
    # The body looks like a request: if the parser lost its beginning, it would be answered.
    within = b"GET /health/live HTTP/1.0\r\nHost: x\r\n\r\n"
    create = b"POST /order HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%b" % (len(within), within)
    two = create + b"GET /configuration HTTP/1.1\r\nHost: x\r\n\r\n"
    with busy(service, 1):
        for start in range(1, len(two), 40):
            parts = [(two[:at], two[at:], create) for at in range(start, min(start + 40, len(two)))]
            for statuses in await asyncio.gather(*(answers_to(service, *each) for each in parts)):
                assert statuses == [b"503"] * 3


@pytest.mark.parametrize("before", [b"", b"GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n"])
async def test_after_a_refusal_the_rest_of_its_body_is_skipped_and_the_next_request_is_answered(
    service: Running, before: bytes
) -> None:
    body = b"GET /nowhere HTTP/1.1\r\nHost: x\r\n\r\n"
    create = b"POST /order HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body)
    live = b"GET /health/live HTTP/1.1\r\nHost: x\r\n\r\n"
    for at in range(len(body) + 1):
        reader, writer = await asyncio.open_connection("127.0.0.1", port_of(service))
        with busy(service, 1):
            writer.write(before + create + body[:at])
            statuses = [await status_of(reader) for _ in range(1 + bool(before))]
        writer.write(body[at:] + live + live)
        statuses += [await status_of(reader) for _ in range(2)]
        writer.close()
        assert statuses == [b"200"] * bool(before) + [b"503", b"200", b"200"]


async def test_a_client_that_disconnects_after_a_refusal_leaves_other_connections_alone(
    service: Running,
) -> None:
    create = b"POST /order HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n"
    with busy(service, 1):
        gone, staying = [await asyncio.open_connection("127.0.0.1", port_of(service)) for _ in range(2)]
        for reader, writer in (gone, staying):
            writer.write(create)
            assert await status_of(reader) == b"503"
        gone[1].transport.abort()
        staying[1].write(b"123456789" + create)
        assert await status_of(staying[0]) == b"503"
    staying[1].close()


async def fields_of(service: Running, request: bytes) -> tuple[dict[bytes, bytes], dict[str, object]]:
    """Return the header fields of the answer, and its body."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port_of(service))
    writer.write(request)
    head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 60)
    fields = dict(line.split(b": ", 1) for line in head.split(b"\r\n")[1:-2])
    body = json.loads(await reader.readexactly(int(fields[b"content-length"])))
    writer.close()
    return fields, body


@pytest.mark.parametrize(
    "line", [b"GET /order", b"GET /nowhere", b"GET /order/4111111111111111", b"POST /sdk/v1/checkouts"]
)
async def test_an_early_refusal_is_the_same_as_a_refusal_by_a_task(service: Running, line: bytes) -> None:
    with busy(service, 1):
        # A request that closes its connection is not refused early.
        plain, said = await fields_of(service, b"%b HTTP/1.1\r\nHost: x\r\n\r\n" % line)
        closing, long = await fields_of(
            service, b"%b HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n" % line
        )
    assert closing.pop(b"connection") == b"close"
    for fields, body in ((plain, said), (closing, long)):
        assert body.pop("requestId") == fields.pop(b"x-request-id").decode()
        fields.pop(b"date")
    assert (plain, said) == (closing, long)
    assert said["status"] == 503
    assert plain[b"retry-after"] == b"1"
    assert "4111111111111111" not in str(said)
