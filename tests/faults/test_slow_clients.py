"""Slow and endless clients against the real service: each is disconnected at its deadline, without effect on others (H05).

The deadlines are those of production, so all kinds of slow clients run concurrently. The fixture `seen` takes 20 seconds.
"""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Coroutine, Iterator
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from support.faults.served import ORDER, Service, service, token, until
from support.faults.slow_peers import Ending, flood, late, read_nothing, say, trickle

pytestmark = pytest.mark.faults

EACH = 58
# The server checks deadlines twice a second, later on a busy machine. The test fails if a client is still connected after this.
SLACK = 60.0
HALF_A_HEAD = b"POST /order HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Ty"


@pytest.fixture(scope="module")
def served() -> Iterator[Service]:
    with service() as made:
        made.start()
        yield made


@dataclass
class Seen:
    """The results of each kind of slow client, and of the honest client that ran at the same time."""

    endings: dict[str, list[Ending]]
    answered: list[int]
    # How many responses the honest merchant had when each slow client began, and when each was disconnected.
    at_begin: list[int]
    at_end: list[int]
    honest_went_on: bool
    order: dict[str, Any]
    again: httpx.Response


def capture(order: str, headers: dict[str, str], reference: str) -> tuple[bytes, bytes]:
    """Head and body of a capture of one cent."""
    body = json.dumps({"amount": "0.01", "merchantReference": reference}).encode()
    lines = [
        f"POST /order/{order}/capture HTTP/1.1",
        "Host: 127.0.0.1",
        *(f"{n}: {v}" for n, v in headers.items()),
    ]
    lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
    return ("\r\n".join(lines) + "\r\n\r\n").encode(), body


async def honestly(url: str, order: str, headers: dict[str, str], answered: list[int]) -> None:
    """Capture one cent after another, as an honest merchant does."""
    async with httpx.AsyncClient(base_url=url, trust_env=False, timeout=60, headers=headers) as http:
        while True:
            body = {"amount": "0.01", "merchantReference": f"honest-{len(answered)}"}
            answered.append((await http.post(f"/order/{order}/capture", json=body)).status_code)
            await asyncio.sleep(0.02)


def slowly(port: int, order: str, headers: dict[str, str]) -> dict[str, list[Coroutine[Any, Any, Ending]]]:
    """Return every kind of slow client."""
    head, body = capture(order, headers, "late")
    documents = b"GET /openapi.json HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" * 17
    return {
        "silent": [say(port, b"") for _ in range(EACH)],
        "half a head": [say(port, HALF_A_HEAD) for _ in range(EACH)],
        "a head byte by byte": [trickle(port, b"GET / HT", b"TP/1.1\r\n" + b"X" * 60) for _ in range(EACH)],
        "half a body": [say(port, head + body[:20]) for _ in range(EACH)],
        "a body byte by byte": [trickle(port, head + body[:1], body[1:]) for _ in range(EACH)],
        "a body that comes late": [late(port, head + body[:-18], body[-18:]) for _ in range(3)],
        "an answer that nobody reads": [read_nothing(port, documents) for _ in range(7)],
    }


async def begun(
    slow: Coroutine[Any, Any, Ending],
    number: int,
    answered: list[int],
    at_begin: list[int],
    at_end: list[int],
) -> Ending:
    """Start the clients one after the other. The server may refuse a client if a hundred connect at the same moment."""
    await asyncio.sleep(number * 0.03)
    at_begin.append(len(answered))
    ending = await slow
    at_end.append(len(answered))
    return ending


@pytest.fixture(scope="module")
async def seen(served: Service) -> Seen:
    merchant = await asyncio.to_thread(served.merchant)
    headers = token(served.url, merchant)
    async with httpx.AsyncClient(base_url=served.url, trust_env=False, timeout=60, headers=headers) as http:
        created = (await http.post("/order", json=ORDER)).json()
    walked = served.run("sandbox", "complete", created["redirectUrl"], "--outcome", "approved")
    assert walked.returncode == 0, walked.stderr
    order, answered = created["orderId"], list[int]()
    kinds = slowly(served.port, order, headers)
    honest = asyncio.create_task(honestly(served.url, order, headers, answered))
    at_begin, at_end = list[int](), list[int]()
    ended = await asyncio.gather(
        *(
            asyncio.gather(*(begun(slow, n, answered, at_begin, at_end) for n, slow in enumerate(several)))
            for several in kinds.values()
        )
    )
    honest_went_on = not honest.done()
    honest.cancel()
    await asyncio.gather(honest, return_exceptions=True)
    async with httpx.AsyncClient(base_url=served.url, trust_env=False, timeout=60, headers=headers) as http:
        record = (await http.get(f"/order/{order}")).json()
        body = {"amount": "0.01", "merchantReference": "late"}
        again = await http.post(f"/order/{order}/capture", json=body)
    endings = dict(zip(kinds, map(list, ended), strict=True))
    return Seen(endings, answered, at_begin, at_end, honest_went_on, record, again)


@pytest.mark.parametrize(
    ("kind", "seconds", "status"),
    [
        ("silent", 10, 0),
        ("half a head", 10, 408),
        ("a head byte by byte", 10, 408),
        ("half a body", 15, 408),
        ("a body byte by byte", 15, 408),
        ("a body that comes late", 15, 408),
        ("an answer that nobody reads", 15, 0),
    ],
)
async def test_each_kind_of_slow_client_is_disconnected_at_its_deadline_and_not_before(
    seen: Seen, kind: str, seconds: int, status: int
) -> None:
    endings = seen.endings[kind]
    assert {ending.status for ending in endings} == {status}
    assert seconds <= min(ending.seconds for ending in endings)
    assert max(ending.seconds for ending in endings) <= seconds + SLACK


async def test_a_late_client_gets_an_answer_with_the_reason_and_connection_close(seen: Seen) -> None:
    for kind, said in (
        ("half a head", b"The head of the request did not arrive within 10 seconds.\n"),
        ("half a body", b"The body of the request did not arrive within 15 seconds. Nothing was applied.\n"),
    ):
        head, _, text = seen.endings[kind][0].said.partition(b"\r\n\r\n")
        assert text == said
        assert b"\r\nconnection: close" in head
        assert b"\r\ncontent-length: %d\r\n" % len(said) in head


async def test_a_capture_whose_body_is_late_is_not_applied_and_its_reference_can_be_used_again(
    seen: Seen,
) -> None:
    references = [capture["merchantReference"] for capture in seen.order["captures"]]
    assert "late" not in references
    assert seen.again.status_code == 200, seen.again.text


async def test_honest_clients_are_answered_while_300_connections_are_slow(seen: Seen) -> None:
    assert sum(map(len, seen.endings.values())) == 300
    assert seen.honest_went_on
    # The honest merchant got responses while all slow clients were connected, before the first was disconnected.
    assert max(seen.at_begin) < min(seen.at_end)
    assert set(seen.answered) == {200}
    captured = {capture["merchantReference"] for capture in seen.order["captures"]}
    # The last capture may have been in progress when the client was stopped.
    assert len(captured) - len(seen.answered) in {0, 1}


CHUNKED = b"POST /oauth/token HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
ENDLESS = {
    "a chunk extension": (CHUNKED + b"1;a=", b"b" * 65536),
    "tiny chunks": (CHUNKED, b"1;a=b\r\n \r\n" * 6000),
    "trailers": (CHUNKED + b"1\r\n \r\n0\r\n", b"X-A: bbbbbbbb\r\n" * 4000),
}


@pytest.mark.parametrize("kind", ENDLESS)
async def test_chunk_headers_and_trailers_have_a_size_limit_as_bodies_do(served: Service, kind: str) -> None:
    ending = await flood(served.port, *ENDLESS[kind], 64 * 1024 * 1024)
    assert ending.status in {400, 413}
    # The test does not check how much the client could send. The server discards everything after the refusal.
    assert b"connection: close" in ending.said.lower()


async def test_9_pipelined_requests_are_answered_in_order_and_then_the_connection_is_closed(
    served: Service,
) -> None:
    asked = b"".join(b"GET /health/live?%d HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" % n for n in range(5_000))
    ending = await say(served.port, asked)
    answers = ending.said.split(b"HTTP/1.1 ")[1:]
    assert [answer[:6] for answer in answers] == [b"200 OK"] * 9
    assert [b"connection: close" in answer for answer in answers] == [False] * 8 + [True]


async def test_a_stop_does_not_wait_for_slow_clients_and_answers_those_that_can_still_read(
    served: Service,
) -> None:
    headers = {"Authorization": "Bearer x"}
    kinds = slowly(served.port, "01990000-0000-7000-8000-000000000001", headers)
    head, body = capture("01990000-0000-7000-8000-000000000001", headers, "late")
    tasks = [asyncio.create_task(kinds[kind].pop()) for kind in kinds]
    told = asyncio.create_task(
        say(served.port, b"POST /oauth/token HTTP/1.1\r\n" + head.partition(b"\r\n")[2] + body[:9])
    )
    for several in kinds.values():
        for unused in several:
            unused.close()
    await asyncio.sleep(1)
    process = served.started[-1]
    process.send_signal(signal.SIGTERM)
    code = await asyncio.to_thread(process.wait, 120)
    assert code == 0
    assert (await told).status == 503
    # If the stop had waited for a client, that client would have reached its deadline and got a 408.
    assert 408 not in {ending.status for ending in await asyncio.gather(*tasks)}
    until(lambda: not (served.data / "pg" / "postmaster.pid").exists())
    assert served.errors() == ""
