"""The request log: what is kept of a call, that no request waits for it, and that nothing personal or secret gets into it."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest
from prometheus_client import REGISTRY

from cuota.core.desk.role import Role
from cuota.db.desk import api_requests
from cuota.db.desk.api_requests import ApiRequest, first_id
from cuota.flows.context import Context
from cuota.flows.desk.change_team import invite
from cuota.flows.desk.record import OPERATOR
from cuota.flows.merchant.authenticate import FRESH_SECONDS
from cuota.flows.sandbox.standstill import InFlightGate
from cuota.web.app import ROUTES, make_app
from cuota.web.request_log import LONGEST_BODY, MOST_WAITING, MOST_WAITING_BYTES, RequestLog
from cuota.web.server.request_id import new_request_id
from cuota.work.tidy import forget_requests
from support.api.bodies import FULL, JSON
from support.db.locks import holder
from support.makers import Merchant
from support.own_service import Own
from support.request_log import copy_of, written


@pytest.fixture
async def shop(merchant: Merchant) -> Merchant:
    """A merchant whose dashboard has a person."""
    await staff_of(merchant)
    return merchant


async def staff_of(merchant: Merchant) -> None:
    given = "Ana Silva", "ana@shop.example", Role.DEVELOPER, "new"
    await invite(merchant.service.context, merchant.merchant_id, OPERATOR, *given, mail=False)


async def logged(shop: Merchant, limit: int = 100) -> list[ApiRequest]:
    """Write what waits, and return the merchant's calls, oldest first."""
    return (await written(shop, limit))[::-1]


async def stored(context: Context, shop: Merchant) -> str:
    rows = await context.pool.fetch(
        "SELECT to_jsonb(t)::text AS row FROM api_requests t WHERE merchant_id = $1", shop.merchant_id
    )
    return "\n".join(row["row"] for row in rows)


async def test_a_call_is_kept_with_its_facts_and_masked_bodies(shop: Merchant) -> None:
    order = await shop.approved()
    body = {"amount": "10.50", "merchantReference": "ship-1"}
    answer = await shop.http.post(
        f"/order/{order['orderId']}/capture", json=body, headers={"Idempotency-Key": "k-1"}
    )
    assert answer.status_code == 200
    created, captured = await logged(shop)
    assert created.route == "/order"
    assert created.order_id == captured.order_id == UUID(order["orderId"])
    assert (captured.method, captured.route, captured.status) == ("POST", "/order/{order_id}/capture", 200)
    assert captured.client_id == shop.client_id
    assert captured.address == "127.0.0.1"
    assert str(captured.request_id) == answer.headers["x-request-id"]
    assert (created.keyed, captured.keyed) == (False, True)
    assert captured.code is None
    assert json.loads(captured.request or "") == body
    told = json.loads(captured.response or "")
    assert (told["merchantReference"], told["amount"]) == ("ship-1", 10.5)


async def test_a_refused_call_is_kept_with_its_code(shop: Merchant) -> None:
    order = await shop.approved()
    await shop.move(order, "capture", "999.00", "too-much")
    *_, refused = await logged(shop)
    assert (refused.status, refused.code) == (422, "capture_exceeds_authorized")
    assert json.loads(refused.response or "")["code"] == "capture_exceeds_authorized"


async def test_a_consumers_data_and_secrets_are_never_stored(shop: Merchant) -> None:
    body = {**FULL, "description": "For Jordan", "metadata": {"note": "call 2125550100"}}
    assert (await shop.http.post("/order", json=body)).status_code == 200
    made = (
        await shop.http.post("/webhook-endpoints", json={"url": "https://shop.example/hooks?key=hush"})
    ).json()
    await shop.http.get("/orders?email=jordan%40mail.example", headers={"x-no-contract": "1"})
    await logged(shop)
    text = await stored(shop.service.context, shop)
    hidden = (
        "Jordan",
        "Rivera",
        "jordan@mail",
        "2125550100",
        "Mission",
        "94103",
        made["secret"],
        "hush",
        "token=",
    )
    for part in hidden:
        assert part not in text, part
    assert "119.96" in text


@pytest.mark.parametrize(
    "body",
    [
        b'{"amount": "10.00", "consumer": {"givenNames": "Jordan"',
        b"Jordan Rivera <jordan@mail.example>",
        b'{"amount": 1, "amount": 2, "email": "jordan@mail.example"}',
        b"\xff\xfe\x00Jordan",
        b'["' + b"Jordan" * 10 + b'"]',
        b'{"email": "jordan\\ud800@mail.example"}',
        b'{"a":' * 500 + b"1" + b"}" * 500,
        b'{"amount": NaN, "name": "Jordan"}',
        b"",
    ],
)
async def test_a_body_that_is_refused_gives_nothing_away_and_breaks_nothing(
    shop: Merchant, body: bytes
) -> None:
    answer = await shop.http.post("/order", content=body, headers={**JSON, "x-no-contract": "1"})
    assert answer.status_code == 400
    (call,) = await logged(shop)
    assert (call.status, call.code) == (400, answer.json()["code"])
    assert "ordan" not in await stored(shop.service.context, shop)


async def test_a_long_body_is_named_by_its_size(shop: Merchant) -> None:
    items = [{"name": "Jordan" * 20, "price": "1.00", "quantity": 1} for _ in range(300)]
    await shop.http.post("/order", json={**FULL, "items": items})
    (call,) = await logged(shop)
    assert "bytes: too long to show" in (call.request or "")
    assert len(await stored(shop.service.context, shop)) < LONGEST_BODY


@pytest.mark.parametrize(
    "query", ["&".join(f"p{n}=1" for n in range(60)), "%00=%ff&\xe9=1", "=" * 3000, "a;b"]
)
async def test_a_strange_query_does_not_stop_the_log(shop: Merchant, query: str) -> None:
    await shop.http.get(f"/configuration?{query}")
    await shop.http.get("/configuration?limit=5")
    strange, plain = await logged(shop)
    assert strange.route == plain.route == "/configuration"
    assert json.loads(plain.query or "") == {"limit": "5"}


async def test_a_call_that_cannot_be_masked_is_left_out_and_counted(
    shop: Merchant, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = shop.service.app.service.requests
    assert log is not None
    before = counted("dropped")
    await shop.http.get("/configuration?limit=5")
    log._waiting[0].sender = ()  # type: ignore[assignment] # what no server hands over
    await shop.http.get("/configuration")
    (plain,) = await logged(shop)
    assert plain.query is None
    assert counted("dropped") == before + 1


async def test_a_checkouts_token_in_the_path_is_not_stored(shop: Merchant) -> None:
    order = await shop.create()
    await shop.http.get(f"/order/{order['token']}")
    unknown = "5cf0dd96-a3bf-4446-b26a-595e01296703"
    await shop.http.get(f"/order/{unknown}")
    _, found, missing = await logged(shop)
    assert found.order_id == UUID(order["orderId"])
    assert missing.order_id is None
    text = await stored(shop.service.context, shop)
    assert order["token"] not in text
    assert unknown not in text


async def test_a_call_that_the_scope_does_not_allow_is_kept_and_an_unknown_token_is_nobodys(
    shop: Merchant,
) -> None:
    await shop.http.get("/configuration", headers={"Authorization": "Bearer nonsense"})
    assert await logged(shop) == []


async def test_a_merchant_without_people_has_no_log(merchant: Merchant) -> None:
    await merchant.create()
    assert await logged(merchant) == []


async def test_when_the_first_person_comes_the_log_begins_within_seconds(merchant: Merchant) -> None:
    await merchant.create()
    await staff_of(merchant)
    await asyncio.sleep(FRESH_SECONDS)
    await merchant.create()
    assert len(await logged(merchant)) == 1


async def test_the_setting_turns_the_log_off(shop: Merchant) -> None:
    context = shop.service.context
    off = make_app(replace(context, settings=replace(context.settings, request_log=False)))
    assert off.service.requests is None
    assert make_app(context).service.requests is not None


async def put(log: RequestLog, shop: Merchant, count: int) -> int:
    """Put calls into the queue. Return how many were taken."""
    caller = await shop.service.app.service.callers.caller(shop.http.headers["authorization"])
    (route,) = (row for row in ROUTES if row.path == "/configuration")
    taken = 0
    for _ in range(count):
        record = log.begin(caller)
        if record is not None:
            scope = {
                "request_id": new_request_id(), "method": "GET", "route": route, "path_params": {}, "headers": [],
                "query_string": b"", "client": ("127.0.0.1", 5),
            }  # fmt: skip
            log.end(record, scope, 200, 0.001)
            taken += 1
    return taken


def counted(outcome: str) -> float:
    return REGISTRY.get_sample_value("cuota_request_log_total", {"outcome": outcome}) or 0.0


async def test_the_queue_is_bounded_and_what_does_not_fit_is_counted(shop: Merchant) -> None:
    log, before, written = RequestLog(shop.service.context), counted("dropped"), counted("written")
    assert await put(log, shop, MOST_WAITING + 100) == MOST_WAITING
    assert counted("dropped") - before == 100
    await log.flush()
    assert counted("written") - written == MOST_WAITING
    assert len(await logged(shop, MOST_WAITING + 1)) == MOST_WAITING


async def test_large_bodies_fill_the_queue_by_their_bytes(shop: Merchant) -> None:
    log, taken = RequestLog(shop.service.context), 0
    caller = await shop.service.app.service.callers.caller(shop.http.headers["authorization"])
    (route,) = (row for row in ROUTES if row.path == "/configuration")
    while (record := log.begin(caller)) is not None:
        record.asked(b"x" * LONGEST_BODY)
        scope = {
            "request_id": new_request_id(), "method": "POST", "route": route, "path_params": {}, "headers": [],
            "query_string": b"", "client": None,
        }  # fmt: skip
        log.end(record, scope, 200, 0.001)
        taken += 1
    assert taken <= MOST_WAITING_BYTES // LONGEST_BODY


async def test_while_the_log_cannot_be_written_captures_are_answered_and_the_calls_are_written_later(
    own: Own,
) -> None:
    shop = own.merchant
    await staff_of(shop)
    order = await shop.approved()
    log = own.service.app.service.requests
    assert log is not None
    async with holder(own.where) as held:
        await held.run("LOCK TABLE api_requests IN ACCESS EXCLUSIVE MODE")
        writing = asyncio.create_task(log.flush())
        # Nothing can be written as long as this transaction holds its lock, and the capture is answered all the same.
        answer = await shop.move(order, "capture", "1.00")
        assert answer.status_code == 200
        await held.until_done(writing)
    assert [each.route for each in await logged(shop)] == ["/order", "/order/{order_id}/capture"]


async def test_what_waits_is_written_at_the_end(shop: Merchant) -> None:
    log, stop = RequestLog(shop.service.context), asyncio.Event()
    await put(log, shop, 3)
    stop.set()
    await log.run(stop, InFlightGate(is_open=True).inside)
    assert len(await logged(shop)) == 3


async def test_calls_are_deleted_after_30_days_in_bounded_batches(shop: Merchant) -> None:
    await shop.create()
    await logged(shop)
    (call,) = await logged(shop)
    pool = shop.service.context.pool
    old = [copy_of(call, UUID(int=first_id(call.at - timedelta(days=31)).int + n)) for n in range(20)]
    young = [copy_of(call, UUID(int=first_id(call.at - timedelta(days=29)).int + n)) for n in range(3)]
    await api_requests.add(pool, shop.merchant_id, [*old, *young])
    assert await forget_requests(shop.service.context) >= 20
    assert await forget_requests(shop.service.context) == 0
    assert len(await logged(shop)) == 4
