"""The gate before the parser: it takes for a whole request only what the parser does, and counts only what takes a place."""

from __future__ import annotations

import asyncio
import random
from uuid import UUID

import httptools
import pytest

from cuota.web.server import early
from cuota.web.server.admission import Admission
from cuota.web.server.early import Gate
from cuota.web.server.parties import name_of
from support.makers import Merchant, Running
from support.server.crowd import busy, port_of

PLAIN = (
    b"GET /order HTTP/1.1\r\nHost: x\r\nX-A: b\r\n\r\n",
    b"POST /order HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nConnection: keep-alive\r\n\r\nabc",
    b"POST /order?a=b HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer x\r\nContent-Length: 0\r\n\r\n",
)
BITS = (
    *b"\t|\r|\n|\r\n|\0|:|\xff|\x80|\x7f|\x0b|(|?|#|\\|0|3|5|//|\r\n\r\n|\n\n|GET|CONNECT|FOO|PRI|DELETE|HTTP/1.0".split(b"|"),
    b" ", b": ", b"\r\n ", b"\r\n\t", b"Content-Length: 3", b"Transfer-Encoding: chunked", b"Connection: close",
    b"Expect: 100-continue", b"Upgrade: x", b"X : y", b"Host: x\r\n", b'?a={}^"', *PLAIN,
)  # fmt: skip


class Parsed:
    """What the server's parser makes of these bytes."""

    def __init__(self, data: bytes) -> None:
        self.heads, self.whole, self.keeps = 0, 0, False
        parser = httptools.HttpRequestParser(self)
        parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as the server's
        try:
            parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self.whole = -1
        else:
            self.keeps = parser.should_keep_alive()

    def on_url(self, url: bytes) -> None:
        assert httptools.parse_url(url).path.startswith(b"/")

    def on_message_begin(self) -> None:
        self.heads += 1

    def on_message_complete(self) -> None:
        self.whole += 1


def answered_early(data: bytes) -> bool:
    return early.Heads().request_in(data) is not None


def spoilt(chance: random.Random) -> bytes:
    """A plain request with one to three changes."""
    data = bytearray(chance.choice(PLAIN))
    for _ in range(chance.randrange(1, 4)):
        at = chance.randrange(len(data) + 1)
        data[at : at + chance.choice((0, 0, 1, 3))] = chance.choice((b"", *BITS))
    return bytes(data)


def test_what_is_answered_ahead_of_the_parser_is_one_whole_request_to_the_parser_too() -> None:
    chance, early_ones = random.Random(9), 0
    for _ in range(60_000):
        data = spoilt(chance)
        if answered_early(data):
            early_ones += 1
            parsed = Parsed(data)
            assert (parsed.heads, parsed.whole, parsed.keeps) == (1, 1, True), data
    assert early_ones > 2_000
    assert all(map(answered_early, PLAIN))


@pytest.mark.parametrize(
    "other",
    [
        # Where a folded line is one with the line before it, the body is longer, and the next request part of it.
        b"POST /order HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n 1\r\n\r\nabc",
        # Where a line feed alone ends a line, these are two.
        b"GET /order HTTP/1.1\r\nHost: x\r\nX-A: b\n\nGET /order HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /order HTTP/1.1\r\nHost: x\r\nX-A : b\r\n\r\n",
    ],
)
async def test_what_another_server_could_read_differently_ends_its_connection_in_a_crowd_too(
    service: Running, other: bytes
) -> None:
    with busy(service, 1):
        reader, writer = await asyncio.open_connection("127.0.0.1", port_of(service))
        writer.write(other)
        async with asyncio.timeout(5):
            said = await reader.read(-1)
        writer.close()
    assert said.startswith(b"HTTP/1.1 400 ")
    assert said.count(b"HTTP/1.1 ") == 1


CROWD = {
    "of what holds no place": b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n",
    "of what the parser is to judge": b"GET /nowhere HTTP/1.1\r\nHost: x\r\nX-A: upgrade\r\n\r\n",
    "of what is no request yet": b"GET /nowhere HTTP/1.1\r\nHos",
}


@pytest.mark.parametrize("kind", CROWD)
async def test_a_crowd_of_what_takes_no_place_at_the_gate_keeps_no_merchant_out(
    merchant: Merchant, kind: str
) -> None:
    gate = Gate(merchant.service.app)
    token = merchant.http.headers["Authorization"].encode()
    create = b"POST /order HTTP/1.1\r\nHost: x\r\nAuthorization: %b\r\nContent-Length: 2\r\n\r\n{}" % token
    for _ in range(1_000):
        assert gate.refusal(CROWD[kind], []) is None
    assert gate.refusal(create, []) is None


async def test_a_crowd_of_every_open_part_at_the_gate_leaves_places_to_a_merchant(merchant: Merchant) -> None:
    assert (await merchant.http.get("/configuration")).status_code == 200
    gate, token = Gate(merchant.service.app), merchant.http.headers["Authorization"].encode()
    create = b"POST /order HTTP/1.1\r\nHost: x\r\nAuthorization: %b\r\nContent-Length: 2\r\n\r\n{}" % token
    parts = (b"docs", b"static", b"v1", b"sandbox", b".well-known", b"orders", b"nowhere")
    for _ in range(100):
        for part in parts:
            gate.refusal(b"GET /%b/x HTTP/1.1\r\nHost: x\r\n\r\n" % part, [])
    assert gate.refusal(create, []) is None


async def answers_to(service: Running, *packets: bytes) -> list[bytes]:
    """The statuses of what is said to these packets until nothing more comes for the last one."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port_of(service))
    statuses = []
    for packet in packets:
        writer.write(packet)
        await asyncio.sleep(0.005)
    for _ in range(b"".join(packets).count(b" HTTP/1.1\r\n")):
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 10)
        statuses.append(head.split()[1])
        await reader.readexactly(int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0]))
    writer.close()
    assert await reader.read(-1) == b""
    return statuses


async def test_two_requests_are_two_wherever_the_packets_part_and_the_body_is_never_a_third(
    service: Running,
) -> None:
    # The body is a request in form: where its beginning is lost, it would be answered.
    within = b"GET /health/live HTTP/1.0\r\nHost: x\r\n\r\n"
    create = b"POST /order HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%b" % (len(within), within)
    two = create + b"GET /configuration HTTP/1.1\r\nHost: x\r\n\r\n"
    with busy(service, 1):
        for start in range(1, len(two), 40):
            parts = [(two[:at], two[at:], create) for at in range(start, min(start + 40, len(two)))]
            for statuses in await asyncio.gather(*(answers_to(service, *each) for each in parts)):
                assert statuses == [b"503"] * 3


def test_what_a_caller_s_header_fields_say_is_remembered_and_its_next_request_is_read_all_the_same() -> None:
    heads = early.Heads()
    fields = b"Host: x\r\nAuthorization: Bearer x\r\nContent-Length: 3\r\n\r\n"
    token = name_of(b"Bearer x")
    asked = ("POST", "/order/a/capture", token)
    assert heads.request_in(b"POST /order/a/capture HTTP/1.1\r\n" + fields + b"abc") == asked
    assert heads.request_in(b"PUT /order?b HTTP/1.1\r\n" + fields + b"def") == ("PUT", "/order", token)
    # Neither of which is one whole request.
    assert heads.request_in(b"POST /order HTTP/1.1\r\n" + fields + b"ab") is None
    assert heads.request_in(b"POST /order HTTP/1.1\r\n" + fields + b"abcd") is None
    assert heads.request_in(b"POST /order HTTP/1.0\r\n" + fields + b"abc") is None


def test_callers_who_never_send_the_same_twice_fill_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(early, "MOST_REMEMBERED", 10)
    heads = early.Heads()
    for number in range(25):
        assert heads.request_in(b"GET /order HTTP/1.1\r\nHost: x\r\nX-A: %d\r\n\r\n" % number) is not None
    assert len(heads._known) <= 10


async def test_a_share_that_grows_within_a_turn_of_the_loop_is_a_share_at_once(merchant: Merchant) -> None:
    gate, admission = Gate(merchant.service.app), Admission()
    gate._admission = admission
    greedy, others = str(UUID(int=1)), [str(UUID(int=number)) for number in range(2, 6)]
    admission._seen = {greedy, *others}
    admission._count, admission._stood = 5, 192
    admission._held, admission.in_hand = {greedy: 30, others[0]: 12}, 42
    assert gate._is_refused(greedy, creates=False)
    for number in range(8):
        assert not gate._is_refused(others[number % 4], creates=False)
    assert not gate._is_refused(greedy, creates=False)


def test_a_blank_behind_a_token_is_no_other_token() -> None:
    assert name_of(b"Bearer x \t") == name_of(b"Bearer x")
