"""Replays one event, a range, or all events of an endpoint. An Idempotency-Key works on each of these POST routes."""

from __future__ import annotations

import asyncio
import hashlib
from datetime import timedelta
from typing import Any
from uuid import uuid4

import httpx
import pytest

from cuota.db.order import idempotency
from cuota.flows.context import utc_now
from support.api.bodies import assert_refused, failures
from support.api.receiver import Receiver, receiving
from support.makers import Merchant, make_merchant
from support.sending import deliver

KEY = {"Idempotency-Key": "k-1"}


async def register(merchant: Merchant, url: str, **headers: str) -> httpx.Response:
    return await merchant.http.post("/webhook-endpoints", json={"url": url}, headers=headers)


async def replayed(merchant: Merchant, path: str, **more: Any) -> int:
    answer = await merchant.http.post(path, **more)
    assert answer.status_code == 200, answer.text
    return int(answer.json()["replayed"])


def ids(merchant: Merchant, receiver: Receiver) -> list[str]:
    """Return the received events, oldest first, and forget them."""
    came = [merchant.service.contract.check_event(body)["id"] for _, body in receiver.got]
    receiver.got.clear()
    return came


async def deliveries_of(merchant: Merchant, event: str) -> list[dict[str, Any]]:
    return list((await merchant.http.get(f"/events/{event}/deliveries")).json()["deliveries"])


async def test_a_misspelled_field_of_a_range_is_named_in_the_warnings(merchant: Merchant) -> None:
    endpoint = (await register(merchant, "https://shop.example/hooks")).json()
    for path in ("/events/replay", f"/webhook-endpoints/{endpoint['id']}/replay"):
        answer = await merchant.http.post(path, json={"untill": "evt_1"})
        assert [(warning["field"], warning["code"]) for warning in answer.json()["warnings"]] == [
            ("untill", "unknown_field")
        ]
        assert "Did you mean until?" in answer.text
        assert "warnings" not in (await merchant.http.post(path, json={})).json()


async def test_replay_sends_and_counts_one_event_a_range_or_the_events_of_an_endpoint(
    merchant: Merchant,
) -> None:
    async with receiving() as first, receiving() as second:
        one = (await register(merchant, first.url)).json()
        await register(merchant, second.url)
        order = await merchant.approved("100.00")
        await merchant.move(order, "capture", "10.00")
        await deliver(merchant)
        bodies = [body for _, body in first.got]
        sent = ids(merchant, first)
        assert ids(merchant, second) == sent
        assert len(sent) == 3
        assert await replayed(merchant, f"/events/{sent[1]}/replay") == 2
        await deliver(merchant)
        assert [body for _, body in first.got] == bodies[1:2]
        assert ids(merchant, first) == ids(merchant, second) == sent[1:2]
        assert await replayed(merchant, "/events/replay", json={"after": sent[0]}) == 4
        await deliver(merchant)
        assert ids(merchant, first) == ids(merchant, second) == sent[1:]
        path = f"/webhook-endpoints/{one['id']}/replay"
        assert await replayed(merchant, path, json={"after": sent[0], "until": sent[1]}) == 1
        assert await replayed(merchant, path, json={"until": sent[0]}) == 1
        await deliver(merchant)
        assert (ids(merchant, first), ids(merchant, second)) == (sent[:2], [])
        assert await replayed(merchant, path, json={}) == 3
        assert await replayed(merchant, "/events/replay", json={"after": sent[2]}) == 0
        assert await replayed(merchant, "/events/replay", json={}) == 6
        await deliver(merchant)
        assert ids(merchant, first) == ids(merchant, second) == sent


async def test_the_order_s_own_address_is_a_receiver_too(merchant: Merchant) -> None:
    async with receiving() as receiver:
        addresses = {
            "redirectConfirmUrl": "https://shop.example/y",
            "redirectCancelUrl": "https://shop.example/n",
        }
        await merchant.create(merchant={**addresses, "statusCallbackUrl": receiver.url})
        await deliver(merchant)
        (event,) = ids(merchant, receiver)
        (delivery,) = await deliveries_of(merchant, event)
        assert (delivery["endpointId"], delivery["url"]) == (None, receiver.url)
        assert await replayed(merchant, f"/events/{event}/replay") == 1
        await deliver(merchant)
        assert ids(merchant, receiver) == [event]


@pytest.mark.plain_postgresql("the test's own UPDATE moves a time by a STABLE function, which Citus refuses")
async def test_a_failed_event_is_shown_and_a_replay_sends_it_at_once_to_the_new_address(
    merchant: Merchant,
) -> None:
    async with receiving() as old, receiving() as new:
        old.status = 500
        endpoint = (await register(merchant, old.url)).json()
        await merchant.create()
        await deliver(merchant)
        (event,) = ids(merchant, old)
        # After several attempts, the next one is an hour ahead, so no worker claims the delivery now.
        await merchant.service.context.pool.fetchrow(
            "UPDATE deliveries SET try_at = try_at + interval '1 hour' WHERE merchant_id = $1",
            merchant.merchant_id,
        )
        (failed,) = await deliveries_of(merchant, event)
        assert (failed["state"], failed["tries"], failed["attempts"][0]["status"]) == ("pending", 1, 500)
        assert failed["nextTryDateTime"] is not None
        assert await replayed(merchant, f"/events/{event}/replay") == 1
        await merchant.http.patch(f"/webhook-endpoints/{endpoint['id']}", json={"url": new.url})
        await deliver(merchant)
        assert (ids(merchant, old), ids(merchant, new)) == ([], [event])
        (settled,) = await deliveries_of(merchant, event)
        assert (settled["state"], settled["nextTryDateTime"]) == ("delivered", None)
        assert [attempt["status"] for attempt in settled["attempts"]] == [500, 200]
        await merchant.http.patch(f"/webhook-endpoints/{endpoint['id']}", json={"url": old.url})
        assert await replayed(merchant, f"/events/{event}/replay") == 1
        await deliver(merchant)
        assert (ids(merchant, old), ids(merchant, new)) == ([event], [])


@pytest.mark.parametrize(
    ("body", "code", "found"),
    [
        ({"after": 7, "until": []}, "malformed_request", [("after", "wrong_type"), ("until", "wrong_type")]),
        ({"after": ""}, "validation_failed", [("after", "too_short")]),
        ({"until": "x" * 101}, "validation_failed", [("until", "too_long")]),
        ({"until": "evt_1"}, "validation_failed", [("until", "invalid")]),
        ({"after": f"evt_{'0' * 32}_1"}, "validation_failed", [("after", "invalid")]),
    ],
)
async def test_the_error_names_a_bad_range(
    merchant: Merchant, body: dict[str, Any], code: str, found: list[tuple[str, str]]
) -> None:
    endpoint = (await register(merchant, "https://shop.example/")).json()
    for path in ("/events/replay", f"/webhook-endpoints/{endpoint['id']}/replay"):
        answer = await merchant.http.post(path, json=body)
        assert_refused(answer, 400, code)
        assert failures(answer) == found


async def test_a_range_of_another_merchant_s_events_sends_nothing(merchant: Merchant) -> None:
    async with receiving() as receiver, make_merchant(merchant.service) as other:
        await register(merchant, receiver.url)
        await merchant.create()
        await deliver(merchant)
        (event,) = ids(merchant, receiver)
        answer = await other.http.post("/events/replay", json={"until": event})
        assert_refused(answer, 400, "validation_failed")
        assert await replayed(other, "/events/replay", json={}) == 0
        await deliver(merchant)
        assert receiver.got == []


async def test_a_key_registers_one_endpoint_and_the_stored_answer_s_secret_is_encrypted(
    merchant: Merchant,
) -> None:
    url = "https://shop.example/hooks"
    answers = await asyncio.gather(*(register(merchant, url, **KEY) for _ in range(12)))
    assert {answer.status_code for answer in answers} <= {200, 409}
    again = await register(merchant, url, **KEY)
    first = next(answer for answer in answers if answer.status_code == 200)
    assert again.content == first.content
    assert (again.headers["idempotency-replayed"], again.headers["cache-control"]) == ("true", "no-store")
    assert len((await merchant.http.get("/webhook-endpoints")).json()["endpoints"]) == 1
    await assert_unreadable(merchant, first.json()["secret"])
    assert_refused(await register(merchant, f"{url}/2", **KEY), 422, "idempotency_key_reused")
    refused = [await register(merchant, "x", **{"Idempotency-Key": "bad"}) for _ in range(2)]
    assert refused[0].content == refused[1].content
    assert refused[1].headers["idempotency-replayed"] == "true"
    assert_refused(refused[1], 400, "validation_failed")


async def assert_unreadable(merchant: Merchant, secret: str) -> None:
    row = await merchant.service.context.pool.fetchrow(
        "SELECT body FROM idempotency_keys WHERE merchant_id = $1 AND key = 'k-1'", merchant.merchant_id
    )
    assert row is not None
    assert len(row["body"]) > 100
    assert secret.removeprefix("whsec_").encode() not in row["body"]
    assert b"whsec" not in row["body"]


async def test_a_key_rotates_a_secret_sends_a_test_or_replays_only_once(merchant: Merchant) -> None:
    async with receiving() as receiver:
        endpoint = (await register(merchant, receiver.url)).json()
        await merchant.create()
        await deliver(merchant)
        (event,) = ids(merchant, receiver)
        path = f"/webhook-endpoints/{endpoint['id']}"
        first, again = [await merchant.http.post(f"{path}/rotate-secret", headers=KEY) for _ in range(2)]
        assert first.content == again.content
        assert again.headers["idempotency-replayed"] == "true"
        await assert_unreadable(merchant, first.json()["secret"])
        calls: list[tuple[str, dict[str, Any]]] = [
            (f"{path}/test", {}),
            (f"{path}/replay", {"json": {}}),
            (f"/events/{event}/replay", {}),
            ("/events/replay", {"json": {"until": event}}),
        ]
        for number, (target, more) in enumerate(calls):
            key = {"Idempotency-Key": f"once-{number}"}
            answers = [await merchant.http.post(target, headers=key, **more) for _ in range(3)]
            assert {answer.status_code for answer in answers} == {200}
            assert len({answer.content for answer in answers}) == 1
            assert [answer.headers.get("idempotency-replayed") for answer in answers] == [
                None,
                "true",
                "true",
            ]
            await deliver(merchant)
            assert len(receiver.got) == 1
            receiver.got.clear()
        reused = await merchant.http.post(f"{path}/test", headers=KEY)
        assert_refused(reused, 422, "idempotency_key_reused")


async def test_a_repetition_waits_for_a_running_first_request_but_not_for_a_dead_one(
    merchant: Merchant,
) -> None:
    target = "/events/replay"
    asked = hashlib.sha256(f"POST {target}?\n".encode() + b"{}").digest()
    pool = merchant.service.context.pool
    for key, ago, status in (("runs", 0.0, 409), ("died", idempotency.LEASE.total_seconds() + 1, 200)):
        begun = utc_now() - timedelta(seconds=ago)
        assert await idempotency.claim(pool, merchant.merchant_id, key, asked, uuid4(), begun)
        headers = {"Idempotency-Key": key, "Content-Type": "application/json"}
        answer = await merchant.http.post(target, content=b"{}", headers=headers)
        assert answer.status_code == status


async def test_a_call_with_an_unusable_key_changes_nothing(merchant: Merchant) -> None:
    answer = await register(merchant, "https://shop.example/", **{"Idempotency-Key": ""})
    assert_refused(answer, 400, "bad_header")
    assert (await merchant.http.get("/webhook-endpoints")).json() == {"endpoints": []}


async def test_a_new_endpoint_gets_earlier_events_only_by_a_replay(
    merchant: Merchant,
) -> None:
    order = await merchant.approved("100.00")
    await deliver(merchant)
    async with receiving() as late:
        endpoint = (await register(merchant, late.url)).json()
        await merchant.move(order, "capture", "10.00")
        await deliver(merchant)
        assert len(ids(merchant, late)) == 1
        assert await replayed(merchant, f"/webhook-endpoints/{endpoint['id']}/replay", json={}) == 3
        await deliver(merchant)
        bodies = [body for _, body in late.got]
        assert [merchant.service.contract.check_event(body)["sequence"] for body in bodies] == [1, 2, 3]
