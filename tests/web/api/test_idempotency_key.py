"""Tests of the `Idempotency-Key` header."""

from __future__ import annotations

import asyncio
import hashlib
import json
import secrets
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import uuid4

import httpx
import pytest

from cuota.db.order import idempotency
from cuota.flows.context import utc_now
from cuota.web.service import Service
from support.api.bodies import JSON, assert_refused
from support.flows.interrupted import CutPool
from support.makers import Merchant, order_body
from support.own_service import Own

BODY = json.dumps(order_body("100.00")).encode()


async def create(merchant: Merchant, key: str, body: bytes = BODY, path: str = "/order") -> httpx.Response:
    return await merchant.http.post(path, content=body, headers={**JSON, "Idempotency-Key": key})


async def orders_of(merchant: Merchant) -> int:
    row = await merchant.service.context.pool.fetchrow(
        "SELECT count(*) AS orders FROM orders WHERE merchant_id = $1", merchant.merchant_id
    )
    assert row is not None
    return int(row["orders"])


async def claim(
    merchant: Merchant, key: str, ago: timedelta, path: str = "/order", body: bytes = BODY
) -> None:
    """Write the row of a first request that began this long ago and is still running, or has crashed."""
    asked = hashlib.sha256(f"POST {path}?\n".encode() + body).digest()
    pool = merchant.service.context.pool
    assert await idempotency.claim(pool, merchant.merchant_id, key, asked, uuid4(), utc_now() - ago)


async def test_the_same_key_and_body_get_the_stored_answer(merchant: Merchant) -> None:
    key = secrets.token_hex(8)
    first, again = await create(merchant, key), await create(merchant, key)
    assert first.status_code == again.status_code == 200
    assert first.content == again.content
    assert "idempotency-replayed" not in first.headers
    assert again.headers["idempotency-replayed"] == "true"
    assert first.headers["x-request-id"] != again.headers["x-request-id"]
    assert await orders_of(merchant) == 1


async def test_a_repeated_capture_gets_the_stored_answer_without_a_second_capture(merchant: Merchant) -> None:
    order = await merchant.approved("100.00")
    headers = {"Idempotency-Key": "cap"}
    first, again = [await merchant.move(order, "capture", "10.00", "c-1", headers=headers) for _ in range(2)]
    assert first.status_code == again.status_code == 200
    assert first.content == again.content
    assert again.headers["idempotency-replayed"] == "true"
    assert (await merchant.read(order))["capturedAmount"] == 10


async def test_the_same_key_with_another_body_is_refused(merchant: Merchant) -> None:
    await create(merchant, "k")
    answer = await create(merchant, "k", json.dumps(order_body("100.01")).encode())
    assert_refused(answer, 422, "idempotency_key_reused")
    assert await orders_of(merchant) == 1


async def test_the_same_key_and_body_on_another_call_are_refused(merchant: Merchant) -> None:
    order = await merchant.approved("100.00")
    headers = {"Idempotency-Key": "k"}
    assert (await merchant.move(order, "capture", "10.00", "x", headers=headers)).status_code == 200
    void = await merchant.move(order, "void", "10.00", "x", headers=headers)
    assert_refused(void, 422, "idempotency_key_reused")
    path, body = f"/order/{order['orderId']}/void?dryRun=true", {"amount": 1, "merchantReference": "x"}
    assert (await merchant.http.post(path, json=body, headers={"Idempotency-Key": "d"})).status_code == 200
    real = await merchant.http.post(path.partition("?")[0], json=body, headers={"Idempotency-Key": "d"})
    assert_refused(real, 422, "idempotency_key_reused")


async def test_two_merchants_do_not_share_keys(merchant: Merchant, auto_merchant: Merchant) -> None:
    first, second = await create(merchant, "k"), await create(auto_merchant, "k")
    assert first.json()["orderId"] != second.json()["orderId"]


async def test_while_the_first_request_runs_a_second_one_gets_a_retry_after(merchant: Merchant) -> None:
    await claim(merchant, "k", timedelta(0))
    answer = await create(merchant, "k")
    assert_refused(answer, 409, "idempotency_in_progress")
    assert int(answer.headers["retry-after"]) > 0
    assert await orders_of(merchant) == 0


async def test_the_retry_after_of_a_young_request_is_one_second(merchant: Merchant) -> None:
    # In the future, so that the request is young even if the test is slow.
    await claim(merchant, "k", -timedelta(minutes=1))
    assert (await create(merchant, "k")).headers["retry-after"] == "1"


async def test_after_the_retry_after_of_an_old_request_its_key_is_free_even_if_its_process_died(
    merchant: Merchant,
) -> None:
    await claim(merchant, "k", timedelta(seconds=5))
    asked_at = utc_now()
    answer = await create(merchant, "k")
    assert_refused(answer, 409, "idempotency_in_progress")
    wait = timedelta(seconds=int(answer.headers["retry-after"]))
    assert wait < idempotency.LEASE
    retried = hashlib.sha256(b"POST /order?\n" + BODY).digest()
    pool, key = merchant.service.context.pool, (merchant.merchant_id, "k", retried, uuid4())
    assert not await idempotency.claim(pool, *key, asked_at)
    assert await idempotency.claim(pool, *key, utc_now() + wait)


async def test_after_a_crash_of_the_first_request_a_repetition_runs_once(merchant: Merchant) -> None:
    await claim(merchant, "k", idempotency.LEASE + timedelta(seconds=1))
    answers = await asyncio.gather(*(create(merchant, "k") for _ in range(8)))
    assert {answer.status_code for answer in answers} <= {200, 409}
    assert len({answer.content for answer in answers if answer.status_code == 200}) == 1
    assert await orders_of(merchant) == 1


async def test_after_a_crash_of_the_first_request_the_key_cannot_be_used_for_another_request(
    merchant: Merchant,
) -> None:
    await claim(merchant, "k", idempotency.LEASE + timedelta(seconds=1), body=b"{}")
    assert_refused(await create(merchant, "k"), 422, "idempotency_key_reused")


async def test_a_claim_whose_session_was_lost_does_not_block_the_retry(own: Own) -> None:
    plain: Service = own.service.app.service
    cut = CutPool(own, "after", call="INSERT INTO idempotency_keys")
    own.service.app.service = replace(plain, context=replace(own.context, pool=cut))
    lost = await create(own.merchant, "lost")
    own.service.app.service = plain
    assert cut.cut == 1
    assert_refused(lost, 503, "unavailable")
    assert (await create(own.merchant, "lost")).status_code == 200
    assert await orders_of(own.merchant) == 1


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("body", [{"url": "http://127.0.0.1:9/hook"}, {}])
async def test_an_answer_whose_session_was_lost_while_it_was_stored_is_repeated(
    own: Own, when: str, body: dict[str, Any]
) -> None:
    plain: Service = own.service.app.service
    cut = CutPool(own, when, call="UPDATE idempotency_keys SET status")
    own.service.app.service = replace(plain, context=replace(own.context, pool=cut))
    raw = json.dumps(body).encode()
    first = await create(own.merchant, "lost", raw, "/webhook-endpoints")
    own.service.app.service = plain
    assert cut.cut == 1
    again = await create(own.merchant, "lost", raw, "/webhook-endpoints")
    assert (again.status_code, again.content) == (first.status_code, first.content)
    assert again.headers["idempotency-replayed"] == "true"


async def test_after_a_day_the_key_can_be_used_again(merchant: Merchant) -> None:
    await claim(merchant, "k", idempotency.KEPT + timedelta(seconds=1), body=b"{}")
    assert (await create(merchant, "k")).status_code == 200


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [("/order", {"amount": 1}, 400), ("/order", order_body("0.50"), 400), ("/order/x/capture", {}, 422)],
)
async def test_a_refusal_is_stored_too(
    merchant: Merchant, path: str, body: dict[str, Any], status: int
) -> None:
    order = await merchant.approved("100.00")
    path = path.replace("/x/", f"/{order['orderId']}/")
    raw = json.dumps(body).encode()
    first, again = [await create(merchant, "k", raw, path) for _ in range(2)]
    assert first.status_code == again.status_code == status
    assert first.content == again.content
    assert again.headers["content-type"] == "application/problem+json"
    assert again.headers["idempotency-replayed"] == "true"


async def test_a_stored_refusal_is_repeated_even_if_its_reason_is_gone(merchant: Merchant) -> None:
    order = await merchant.approved("100.00")
    headers = {"Idempotency-Key": "k"}
    assert_refused(
        await merchant.move(order, "refund", "5.00", "r", headers=headers), 422, "refund_exceeds_captured"
    )
    await merchant.move(order, "capture", "5.00")
    again = await merchant.move(order, "refund", "5.00", "r", headers=headers)
    assert again.headers["idempotency-replayed"] == "true"
    assert_refused(again, 422, "refund_exceeds_captured")
    # The refusal has released the reference.
    assert (await merchant.move(order, "refund", "5.00", "r")).status_code == 200


async def test_a_quoted_key_is_the_same_key(merchant: Merchant) -> None:
    first, again = await create(merchant, '"k-1"'), await create(merchant, "k-1")
    assert first.content == again.content
    assert again.headers["idempotency-replayed"] == "true"


@pytest.mark.parametrize(
    "key", [b"", b'""', b"k" * 256, "schl\u00fcssel".encode(), b"\xff", b"a\tb", b"k\xa0"]
)
async def test_an_unusable_key_is_a_bad_header(merchant: Merchant, key: bytes) -> None:
    headers = [(b"Content-Type", b"application/json"), (b"Idempotency-Key", key)]
    answer = await merchant.http.post("/order", content=BODY, headers=headers)
    assert_refused(answer, 400, "bad_header")
    assert await orders_of(merchant) == 0


async def test_two_keys_are_a_bad_header(merchant: Merchant) -> None:
    headers = [("Content-Type", "application/json"), ("Idempotency-Key", "a"), ("Idempotency-Key", "a")]
    assert_refused(await merchant.http.post("/order", content=BODY, headers=headers), 400, "bad_header")


async def test_a_key_of_255_characters_is_usable(merchant: Merchant) -> None:
    assert (await create(merchant, "k" * 255)).status_code == 200


async def test_20_simultaneous_creations_with_one_key_make_one_order(merchant: Merchant) -> None:
    answers = await asyncio.gather(*(create(merchant, "k") for _ in range(20)))
    good = [answer for answer in answers if answer.status_code == 200]
    assert len({answer.content for answer in good}) == 1
    assert {answer.status_code for answer in answers} <= {200, 409}
    assert await orders_of(merchant) == 1
    assert (await create(merchant, "k")).content == good[0].content


async def test_a_key_never_returns_success_for_money_that_did_not_move(merchant: Merchant) -> None:
    order = await merchant.approved("100.00")
    assert (await merchant.move(order, "capture", "100.00")).status_code == 200

    async def refund(number: int) -> httpx.Response:
        return await merchant.move(
            order, "refund", "1.00", f"r{number}", headers={"Idempotency-Key": f"{order['orderId']}-{number}"}
        )

    waiting = set(range(32))
    for _ in range(40):
        answers = await asyncio.gather(*(refund(number) for number in sorted(waiting)))
        waiting -= {
            number for number, answer in zip(sorted(waiting), answers, strict=True) if answer.is_success
        }
        if not waiting:
            break
    assert not waiting
    record = await merchant.read(order)
    assert record["refundedAmount"] == 32
    assert len(record["refunds"]) == 32
