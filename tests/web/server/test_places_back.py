"""A connection is cut after each byte of a request, and during its answer: all places and connections are released."""

from __future__ import annotations

import asyncio
import json
import socket
import struct

import pytest

from cuota.web.server import deadlines
from support.makers import Merchant, Running, order_body
from support.server.crowd import admission_of, busy, port_of, settled

AT_ONCE = struct.pack("ii", 1, 0)


def connections(service: Running) -> int:
    """Return how many connections this process counts on all ports, with refused ones."""
    del service
    return sum(len(watch._connections) + len(watch.turned_away) for watch in deadlines._watches.values())


async def cut(service: Running, sent: bytes, pause: float, *, reset: bool) -> None:
    """Send this and disconnect, by a normal close or by a reset."""
    loop, peer = asyncio.get_running_loop(), socket.socket()
    peer.setblocking(False)
    await loop.sock_connect(peer, ("127.0.0.1", port_of(service)))
    await loop.sock_sendall(peer, sent)
    await asyncio.sleep(pause)
    if reset:
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, AT_ONCE)
    peer.close()


async def gone(service: Running, before: int) -> None:
    """Wait until every connection has ended, including those with requests in progress."""
    async with asyncio.timeout(60):
        while connections(service) > before:  # noqa: ASYNC110 - asked of counters, which set no event
            await asyncio.sleep(0.02)


def requests(merchant: Merchant) -> list[bytes]:
    """Requests that create an order, in one piece and in chunks, and two requests of which one is pipelined."""
    body = json.dumps(order_body()).encode()
    head = f"POST /order HTTP/1.1\r\nHost: x\r\nAuthorization: {merchant.http.headers['authorization']}\r\n".encode()
    head += b"Content-Type: application/json\r\n"
    whole = head + b"Content-Length: %d\r\n\r\n" % len(body) + body
    chunks = head + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    return [whole, chunks, head.replace(b"POST /order", b"GET /configuration") + b"\r\n" + whole]


@pytest.mark.parametrize("share", [0, 0.5, 1])
async def test_a_connection_cut_after_any_byte_releases_its_place(merchant: Merchant, share: float) -> None:
    service, before = merchant.service, connections(merchant.service)
    with busy(service, share):
        in_hand = admission_of(service).in_hand
        for request in requests(merchant):
            for start in range(0, len(request) + 1, 50):
                ends = range(start, min(start + 50, len(request) + 1))
                cuts = (cut(service, request[:end], end % 3 * 0.002, reset=bool(end % 2)) for end in ends)
                await asyncio.gather(*cuts)
        await gone(service, before)
        # A request whose client has disconnected keeps its place until its work is done.
        async with asyncio.timeout(60):
            while admission_of(service).in_hand != in_hand:  # noqa: ASYNC110 - a counter sets no event
                await asyncio.sleep(0.02)
    await settled(service)


@pytest.mark.parametrize("share", [0, 1])
async def test_a_client_that_disconnects_during_its_answer_releases_its_place(
    merchant: Merchant, share: float
) -> None:
    service, before = merchant.service, connections(merchant.service)
    whole = requests(merchant)[0]
    with busy(service, share):
        for step in range(40):
            cuts = (
                cut(service, whole * (1 + number % 3), step * 0.001, reset=bool(number % 2))
                for number in range(25)
            )
            await asyncio.gather(*cuts)
        await gone(service, before)
    await settled(service)
    assert (await merchant.http.get("/configuration")).status_code == 200
