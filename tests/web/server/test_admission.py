"""Under overload, requests without a place are refused before any work, important requests still get places, and every
place is released."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
from uuid import UUID, uuid4

import httpx
import pytest

from cuota.web.server.parties import STRANGERS, name_of
from support.makers import Merchant, Running, make_merchant, order_body
from support.server.crowd import admission_of, busy, party_of, port_of, raw, refused, scope_of, settled
from support.signed import sdk_body, send

NO_ORDER = "/order/01990000-0000-7000-8000-000000000001"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", NO_ORDER), ("GET", "/configuration"), ("POST", "/order"), ("POST", f"{NO_ORDER}/capture"),
        ("POST", f"{NO_ORDER}/refund"), ("POST", "/checkouts"), ("POST", "/sdk/v1/checkouts"),
        ("POST", "/orders/authorize"), ("GET", "/events"), ("POST", "/oauth/token"), ("GET", "/order/"), ("GET", "/nowhere"),
    ],
)  # fmt: skip
async def test_a_refusal_for_lack_of_a_place_follows_the_contract(
    merchant: Merchant, method: str, path: str
) -> None:
    before = refused("full")
    with busy(merchant.service, 1):
        answer = await merchant.http.request(method, path)
    assert answer.status_code == 503
    assert int(answer.headers["retry-after"]) >= 1
    said = answer.json()
    words = said["error_description"] if path == "/oauth/token" else said["message"]
    assert "did not start" in words
    assert "nothing was applied" in words
    assert said.get("code", "unavailable") == "unavailable"
    assert refused("full") == before + 1


@pytest.mark.parametrize("path", [f"/checkout/{UUID(int=7)}/{UUID(int=8)}", "/account"])
async def test_a_consumer_s_request_without_a_place_gets_a_page(service: Running, path: str) -> None:
    with busy(service, 1):
        async with service.client() as http:
            answers = [await http.get(path) for _ in range(2)]
    for answer in answers:
        assert answer.status_code == 503
        assert answer.headers["retry-after"] == "1"
        assert answer.headers["content-type"].startswith("text/html")
        assert "frame-ancestors" in answer.headers["content-security-policy"]
    assert answers[0].headers["x-request-id"] != answers[1].headers["x-request-id"]


@pytest.mark.parametrize(("method", "sent"), [("GET", ""), ("POST", "application/x-www-form-urlencoded")])
async def test_under_overload_a_shopper_s_browser_gets_a_page_and_a_shop_s_server_does_not(
    service: Running, method: str, sent: str
) -> None:
    browser = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8", "Content-Type": sent}
    with busy(service, 1):
        async with service.client() as http:
            answers = [await http.request(method, "/orders/authorize", headers=browser) for _ in range(2)]
            server = await http.post("/orders/authorize", json={}, headers={"Accept": "text/html"})
    for answer in answers:
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        assert answer.headers["content-type"].startswith("text/html")
        assert answer.headers["x-request-id"] in answer.text
        assert "Nothing was charged. Go back to the shop and try again in a moment." in answer.text
        assert "another way to pay" not in answer.text
    assert answers[0].headers["x-request-id"] != answers[1].headers["x-request-id"]
    assert server.json()["code"] == "unavailable"


async def test_an_unverified_token_does_not_count_as_a_merchant_s_even_together_with_a_signed_request(
    merchant: Merchant,
) -> None:
    forged = f"Bearer {uuid4()}"
    answer = await send(merchant, sdk_body(merchant), Authorization=forged)
    assert answer.status_code == 200
    parties = admission_of(merchant.service).parties
    assert party_of(parties, scope_of(""), name_of(forged.encode())) == STRANGERS
    assert (await merchant.http.get("/configuration")).status_code == 200
    good = merchant.http.headers["Authorization"].encode()
    assert party_of(parties, scope_of(""), name_of(good)) == str(merchant.merchant_id)


async def test_a_refused_request_is_never_applied(merchant: Merchant) -> None:
    order = await merchant.approved("100.00")
    key = {"Idempotency-Key": str(uuid4())}
    with busy(merchant.service, 1):
        for operation in ("capture", "void", "refund"):
            assert (await merchant.move(order, operation, "40.00", "once")).status_code == 503
        first = await merchant.http.post("/order", json=order_body(), headers=key)
        assert first.status_code == 503
    record = await merchant.read(order)
    assert (record["captures"], record["voids"], record["refunds"]) == ([], [], [])
    assert (await merchant.move(order, "capture", "40.00", "once")).status_code == 200
    again = await merchant.http.post("/order", json=order_body(), headers=key)
    assert again.status_code == 200
    assert "idempotency-replayed" not in again.headers


async def test_existing_orders_can_be_completed_while_new_orders_are_refused(merchant: Merchant) -> None:
    order = await merchant.approved("100.00")
    before = refused("creation")
    with busy(merchant.service, 0.8):
        assert (await merchant.http.post("/order", json=order_body())).status_code == 503
        assert (await merchant.http.post("/checkouts", json={})).status_code == 503
        assert (await merchant.http.post("/sdk/v1/checkouts", json={})).status_code == 503
        assert (await merchant.http.get("/orders/authorize")).status_code == 503
        assert (await merchant.move(order, "capture", "40.00")).status_code == 200
        assert (await merchant.move(order, "void", "10.00")).status_code == 200
        assert (await merchant.move(order, "refund", "20.00")).status_code == 200
        assert (await merchant.http.get(f"/order/{order['orderId']}")).status_code == 200
        assert (await merchant.http.get("/order", params={"token": order["token"]})).status_code == 200
        assert await merchant.token()
        page = await merchant.http.get(f"/checkout/{merchant.merchant_id}", params={"token": order["token"]})
        assert page.status_code < 500
    assert refused("creation") == before + 4


async def test_health_and_metrics_are_answered_under_any_load(service: Running) -> None:
    with busy(service, 2):
        async with service.client() as http:
            for path in ("/health/live", "/health/ready", "/metrics"):
                assert (await http.get(path)).status_code == 200
            preflight = await http.options("/sdk/v1/checkouts", headers={"Origin": "https://shop.example"})
            assert preflight.status_code == 204


async def test_a_client_that_sends_its_body_slowly_occupies_no_place(merchant: Merchant) -> None:
    service = merchant.service
    token = merchant.http.headers["Authorization"]
    head = f"POST /order HTTP/1.1\r\nHost: x\r\nAuthorization: {token}\r\nContent-Type: application/json\r\n"
    body = httpx.Request("POST", "http://x", json=order_body()).read()
    assert (await merchant.http.get("/configuration")).status_code == 200
    opened = []
    for _ in range(100):
        reader, writer = await asyncio.open_connection("127.0.0.1", port_of(service))
        writer.write(f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body[:10])
        opened.append((reader, writer))
    await asyncio.sleep(0.2)
    assert (await merchant.create())["orderId"]
    assert admission_of(service).in_hand <= 1
    for reader, writer in opened[:5]:
        writer.write(body[10:])
        assert (await reader.readline()).startswith(b"HTTP/1.1 200")
    for _, writer in opened:
        writer.close()
    await settled(service)


async def _at_random(merchant: Merchant, order: dict, chance: random.Random) -> None:
    """Send one request, good or bad. The client may disconnect before the answer."""
    http, port = merchant.http, port_of(merchant.service)
    what = chance.randrange(7)
    if what == 0:
        await http.get(f"/order/{order['orderId']}")
    elif what == 1:
        await http.get(f"/order/{order['orderId']}", headers={"Authorization": f"Bearer {uuid4()}"})
    elif what == 2:
        await merchant.move(
            order, chance.choice(["capture", "void", "refund"]), chance.choice(["0.01", "9999", "x"])
        )
    elif what == 3:
        await http.post(
            "/order", content=b"{" * chance.randrange(3000), headers={"Content-Type": "application/json"}
        )
    elif what == 4:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(chance.random() * 0.02):
                await merchant.http.post("/order", json=order_body())
    else:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        token = http.headers["Authorization"]
        length = chance.choice([0, 5, 5000])
        writer.write(f"POST /order HTTP/1.1\r\nHost: x\r\nAuthorization: {token}\r\n".encode())
        writer.write(f"Content-Type: application/json\r\nContent-Length: {length}\r\n\r\nabcde".encode())
        await asyncio.sleep(chance.random() * 0.01)
        writer.close()


async def test_every_place_is_released_after_a_thousand_requests_of_every_kind(merchant: Merchant) -> None:
    chance, order = random.Random(6), await merchant.approved("500.00")
    for _ in range(50):
        async with asyncio.TaskGroup() as together:
            for _ in range(20):
                together.create_task(_at_random(merchant, order, chance))
    await settled(merchant.service)


async def test_the_place_of_a_canceled_request_is_released(service: Running) -> None:
    async with make_merchant(service) as merchant:
        token = merchant.http.headers["Authorization"].encode()
        headers = [(b"host", b"x"), (b"authorization", token), (b"content-type", b"application/json")]
        scope = {
            "type": "http", "http_version": "1.1", "method": "POST", "path": "/order", "query_string": b"",
            "headers": headers, "scheme": "http", "server": ("x", 80), "root_path": "",
        }  # fmt: skip

        async def never() -> dict:
            await asyncio.Event().wait()
            return {}

        async def send(message: object) -> None:
            raise AssertionError(message)

        tasks = [asyncio.create_task(service.app(dict(scope), never, send)) for _ in range(20)]
        await asyncio.sleep(0.1)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert all(task.cancelled() for task in tasks)
    await settled(service)


async def test_a_refusal_is_the_same_for_every_framing_of_the_request_s_body(service: Running) -> None:
    plain = b"POST /order/7/capture?dryRun=true HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"
    others = [
        plain.replace(b"Host: x", b"Host: x\r\nX-Note: Upgrade"),
        plain.replace(
            b"Content-Length: 3\r\n\r\nabc", b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"
        ),
        plain.replace(b"Content-Length: 3", b"Content-Length:\t3"),
    ]
    with busy(service, 1):
        answers = await raw(service, plain, *others)
    lines, headers, bodies = zip(*answers, strict=True)
    assert set(lines) == {"HTTP/1.1 503 Service Unavailable"}
    assert len({one["x-request-id"] for one in headers}) == len(answers)
    for one, body in zip(headers, bodies, strict=True):
        assert body.pop("requestId") == one.pop("x-request-id")
        del one["date"]
    assert all(one == headers[0] for one in headers), headers
    assert all(body == bodies[0] for body in bodies), bodies


async def test_a_connection_stays_usable_after_refused_requests(merchant: Merchant) -> None:
    service = merchant.service
    token = merchant.http.headers["Authorization"].encode()
    read = b"GET /configuration HTTP/1.1\r\nHost: x\r\nAuthorization: %b\r\n\r\n" % token
    body = json.dumps(order_body()).encode()
    create = (
        b"POST /order HTTP/1.1\r\nHost: x\r\nAuthorization: %b\r\nContent-Type: application/json\r\n" % token
    )
    create += b"Content-Length: %d\r\n\r\n%b" % (len(body), body)
    with busy(service, 1):
        answers = await raw(
            service, create, read, create + read, create[:50], create[50:] + read[:20], read[20:]
        )
    assert [line.split()[1] for line, _, _ in answers] == ["503"] * 6
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", int(service.settings.public_url.rpartition(":")[2])
    )
    with busy(service, 1):
        writer.write(create)
        assert (await reader.readline()).startswith(b"HTTP/1.1 503")
    writer.write(create)
    rest = b""
    while b"HTTP/1.1 200 OK" not in rest:
        rest += await asyncio.wait_for(reader.read(4096), 60)
    assert rest.count(b"HTTP/1.1") == 1
    writer.close()
