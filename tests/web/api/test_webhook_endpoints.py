"""Webhook endpoints are registered, shown, paused, rotated, tested and removed. Each merchant sees only its own
endpoints."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from typing import Any
from uuid import uuid4

import httpx
import pytest

from cuota.core.webhook.signature import pay_signature, webhook_signature
from cuota.flows.webhook.manage_endpoints import OLD_SECRET_LIVES
from support.api.bodies import JSON, assert_refused, failures
from support.api.receiver import Receiver, receiving
from support.makers import Merchant, make_merchant
from support.sending import deliver

SHOP = "https://shop.example/hooks"


async def register(merchant: Merchant, url: str = SHOP, **more: Any) -> dict[str, Any]:
    answer = await merchant.http.post("/webhook-endpoints", json={"url": url, **more})
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


async def act(merchant: Merchant, endpoint: dict[str, Any], verb: str, **more: Any) -> httpx.Response:
    return await merchant.http.post(f"/webhook-endpoints/{endpoint['id']}/{verb}", **more)


async def listed(merchant: Merchant) -> list[dict[str, Any]]:
    return list((await merchant.http.get("/webhook-endpoints")).json()["endpoints"])


def assert_signed(merchant: Merchant, got: tuple[dict[str, str], bytes], *secrets: str) -> None:
    """Assert that the webhook has a signature for each of these secrets, in this order, and no other."""
    headers, body = got
    merchant.service.contract.check_event_headers(
        merchant.service.contract.check_event(body)["type"], headers
    )
    at = int(headers["webhook-timestamp"])
    assert headers["webhook-signature"] == webhook_signature(secrets, headers["webhook-id"], at, body)
    assert headers["x-pay-signature"] == pay_signature(merchant.signing_secret, body)


async def test_a_misspelled_field_of_an_endpoint_is_named_in_the_warnings(merchant: Merchant) -> None:
    made = await register(merchant, paused=True)
    assert [warning["field"] for warning in made["warnings"]] == ["paused"]
    path = f"/webhook-endpoints/{made['id']}"
    changed = (await merchant.http.patch(path, json={"pausd": True})).json()
    assert changed["state"] == "active"
    assert [warning["field"] for warning in changed["warnings"]] == ["pausd"]
    assert "Did you mean paused?" in changed["warnings"][0]["message"]
    assert "warnings" not in (await merchant.http.patch(path, json={"paused": True})).json()


async def test_an_endpoint_is_registered_and_its_secret_is_shown_once(merchant: Merchant) -> None:
    answer = await merchant.http.post("/webhook-endpoints", json={"url": SHOP, "description": "Shop"})
    made = answer.json()
    assert answer.headers["cache-control"] == "no-store"
    shown = {name: value for name, value in made.items() if name != "secret"}
    assert (shown["url"], shown["description"], shown["state"]) == (SHOP, "Shop", "active")
    assert await listed(merchant) == [shown]
    one = await merchant.http.get(f"/webhook-endpoints/{made['id']}")
    assert one.json() == shown
    row = await merchant.service.context.pool.fetchrow(
        "SELECT secret FROM webhook_endpoints WHERE merchant_id = $1", merchant.merchant_id
    )
    assert row is not None
    assert made["secret"].encode() not in row["secret"]


@pytest.mark.parametrize(
    "url",
    [
        "", "shop.example/hooks", "ftp://shop.example/", "javascript:alert(1)", "//shop.example/",
        "http://user@shop.example/", "https://evil.example\\@good.example/", "https://shop.example/a b",
        "https://shop.example/\nx", "http://sh\u00f6p.example/", "http://127.1\uff0e1/", "https://shop.example:0/",
        "https://shop.example:65536/", "https:///path", "https://shop.example/%zz", "https://x/" + "a" * 2048,
    ],
)  # fmt: skip
async def test_a_bad_address_is_refused_and_the_error_names_it(merchant: Merchant, url: str) -> None:
    answer = await merchant.http.post("/webhook-endpoints", json={"url": url})
    assert_refused(answer, 400, "validation_failed")
    assert failures(answer) == [("url", "invalid")]
    assert await listed(merchant) == []


@pytest.mark.parametrize(
    ("body", "code", "found"),
    [
        ({}, "validation_failed", [("url", "required")]),
        ({"url": None}, "validation_failed", [("url", "required")]),
        ({"url": 7}, "malformed_request", [("url", "wrong_type")]),
        ({"url": SHOP, "description": "x" * 201}, "validation_failed", [("description", "too_long")]),
        ({"url": SHOP, "description": "a\nb"}, "validation_failed", [("description", "control_character")]),
        ({"description": 1}, "malformed_request", [("url", "required"), ("description", "wrong_type")]),
    ],
)
async def test_the_error_names_a_broken_field(
    merchant: Merchant, body: dict[str, Any], code: str, found: list[tuple[str, str]]
) -> None:
    answer = await merchant.http.post("/webhook-endpoints", json=body)
    assert_refused(answer, 400, code)
    assert failures(answer) == found
    assert await listed(merchant) == []


async def test_a_wrong_change_is_refused_and_changes_nothing(merchant: Merchant) -> None:
    made = await register(merchant)
    path = f"/webhook-endpoints/{made['id']}"
    wrong = await merchant.http.patch(path, json={"paused": "yes", "description": "new"})
    assert_refused(wrong, 400, "malformed_request")
    assert failures(wrong) == [("paused", "wrong_type")]
    assert_refused(await merchant.http.patch(path, json={"url": "x"}), 400, "validation_failed")
    assert_refused(await merchant.http.patch(path, content=b"{", headers=JSON), 400, "malformed_request")
    assert (await listed(merchant))[0] == {name: made[name] for name in made if name != "secret"}
    changed = await merchant.http.patch(path, json={"description": "new", "url": None})
    assert (changed.json()["description"], changed.json()["url"]) == ("new", SHOP)


async def test_another_merchant_s_endpoint_gets_the_same_answer_as_an_unknown_endpoint(
    merchant: Merchant,
) -> None:
    made = await register(merchant)
    async with make_merchant(merchant.service) as other:
        messages = set()
        for name in (made["id"], str(uuid4()), "x"):
            path = f"/webhook-endpoints/{name}"
            answers = [
                await other.http.get(path),
                await other.http.patch(path, json={"paused": True}),
                await other.http.delete(path),
                await other.http.post(f"{path}/rotate-secret"),
                await other.http.post(f"{path}/test"),
                await other.http.post(f"{path}/replay", json={}),
            ]
            for answer in answers:
                assert_refused(answer, 404, "not_found")
                messages.add(answer.json()["message"])
        assert len(messages) == 1
    assert (await listed(merchant))[0]["state"] == "active"


async def test_a_test_webhook_is_sent_at_once_and_its_answer_is_returned(merchant: Merchant) -> None:
    async with receiving() as receiver:
        made = await register(merchant, receiver.url)
        answer = (await act(merchant, made, "test")).json()
        assert (answer["acknowledged"], answer["status"], answer["answer"]) == (True, 200, "")
        receiver.status = 302
        answer = (await act(merchant, made, "test")).json()
        assert (answer["acknowledged"], answer["status"]) == (False, 302)
    assert len(receiver.got) == 2
    assert_signed(merchant, receiver.got[0], made["secret"])
    assert merchant.service.contract.check_event(receiver.got[0][1])["type"] == "webhook.test"
    answer = (await act(merchant, await register(merchant, "http://127.0.0.1:9/"), "test")).json()
    assert (answer["acknowledged"], answer["status"]) == (False, None)
    assert answer["error"] == "the connection was refused, or the host cannot be reached"


async def test_a_paused_endpoint_gets_its_events_when_it_is_resumed(merchant: Merchant) -> None:
    async with receiving() as receiver:
        made = await register(merchant, receiver.url)
        path = f"/webhook-endpoints/{made['id']}"
        assert (await merchant.http.patch(path, json={"paused": True})).json()["state"] == "paused"
        await merchant.approved("10.00")
        await deliver(merchant)
        assert receiver.got == []
        assert (await merchant.http.patch(path, json={"paused": False})).json()["state"] == "active"
        await deliver(merchant)
    contract = merchant.service.contract
    types = [contract.check_event(body)["type"] for _, body in receiver.got]
    assert types == ["order.created", "order.approved"]
    for got in receiver.got:
        assert_signed(merchant, got, made["secret"])


@pytest.mark.plain_postgresql("the test's own UPDATE moves a time by a STABLE function, which Citus refuses")
async def test_for_a_day_both_the_old_and_the_new_secret_sign(merchant: Merchant) -> None:
    async with receiving() as receiver:
        made = await register(merchant, receiver.url)
        rotated = (await act(merchant, made, "rotate-secret")).json()
        assert rotated["secret"] != made["secret"]
        assert {**rotated, "secret": ""} == {**made, "secret": ""}
        await _sent(merchant, receiver, made)
        assert_signed(merchant, receiver.got[-1], rotated["secret"], made["secret"])
        # Secrets expire by the real clock, like at receivers. A test cannot move that clock, so it changes the row.
        await _age(merchant, made, OLD_SECRET_LIVES - timedelta(minutes=1))
        await _sent(merchant, receiver, made)
        assert_signed(merchant, receiver.got[-1], rotated["secret"], made["secret"])
        await _age(merchant, made, timedelta(minutes=2))
        await _sent(merchant, receiver, made)
        assert_signed(merchant, receiver.got[-1], rotated["secret"])
        third = (await act(merchant, made, "rotate-secret")).json()
        await _sent(merchant, receiver, made)
        assert_signed(merchant, receiver.got[-1], third["secret"], rotated["secret"])
    assert timedelta(hours=24) == OLD_SECRET_LIVES


async def _age(merchant: Merchant, endpoint: dict[str, Any], by: timedelta) -> None:
    await merchant.service.context.pool.fetchrow(
        "UPDATE webhook_endpoints SET old_secret_ends_at = old_secret_ends_at - $3::interval "
        "WHERE merchant_id = $1 AND endpoint_id = $2",
        merchant.merchant_id, endpoint["id"], by,
    )  # fmt: skip


async def _sent(merchant: Merchant, receiver: Receiver, endpoint: dict[str, Any]) -> None:
    before = len(receiver.got)
    assert (await act(merchant, endpoint, "test")).json()["acknowledged"] is True
    assert len(receiver.got) == before + 1


async def test_a_concurrent_change_never_restores_an_old_secret(merchant: Merchant) -> None:
    async with receiving() as receiver:
        made = await register(merchant, receiver.url)
        path = f"/webhook-endpoints/{made['id']}"
        for number in range(15):
            rotated, *_ = await asyncio.gather(
                act(merchant, made, "rotate-secret"),
                *(merchant.http.patch(path, json={"description": f"{number}-{n}"}) for n in range(4)),
            )
            assert (await act(merchant, made, "test")).json()["acknowledged"] is True
            headers, body = receiver.got[-1]
            newest = webhook_signature(
                [rotated.json()["secret"]], headers["webhook-id"], int(headers["webhook-timestamp"]), body
            )
            assert headers["webhook-signature"].startswith(newest)


async def test_a_removed_endpoint_is_not_found_and_gets_no_more_webhooks(merchant: Merchant) -> None:
    async with receiving() as receiver:
        made = await register(merchant, receiver.url)
        await merchant.create()
        await deliver(merchant)
        path = f"/webhook-endpoints/{made['id']}"
        assert (await merchant.http.delete(path)).json() == {"id": made["id"], "state": "deleted"}
        await merchant.create()
        await deliver(merchant)
        assert len(receiver.got) == 1
        assert await listed(merchant) == []
        for answer in (await merchant.http.get(path), await merchant.http.delete(path)):
            assert_refused(answer, 404, "not_found")
        (event,) = {merchant.service.contract.check_event(body)["id"] for _, body in receiver.got}
        (kept,) = (await merchant.http.get(f"/events/{event}/deliveries")).json()["deliveries"]
        assert (kept["endpointId"], kept["state"], len(kept["attempts"])) == (made["id"], "delivered", 1)
        assert (await merchant.http.post(f"/events/{event}/replay")).json() == {"replayed": 0}
        await deliver(merchant)
        assert len(receiver.got) == 1


async def test_of_60_simultaneous_registrations_exactly_50_are_made(merchant: Merchant) -> None:
    body = {"url": SHOP}
    answers = await asyncio.gather(*(merchant.http.post("/webhook-endpoints", json=body) for _ in range(60)))
    made = [answer for answer in answers if answer.status_code == 200]
    assert len(made) == len({answer.json()["secret"] for answer in made}) == 50
    for answer in answers:
        if answer not in made:
            assert_refused(answer, 400, "validation_failed")
            assert "50 endpoints" in answer.json()["message"]
    assert len(await listed(merchant)) == 50
    gone = made[0].json()["id"]
    await merchant.http.delete(f"/webhook-endpoints/{gone}")
    await register(merchant)
    assert_refused(await merchant.http.post("/webhook-endpoints", json=body), 400, "validation_failed")


@pytest.mark.parametrize("host", ["10.0.0.1", "169.254.169.254", "[::ffff:10.0.0.1]", "192.168.1.1:8080"])
async def test_an_address_inside_a_network_is_refused_when_it_is_registered(
    merchant: Merchant, host: str
) -> None:
    answer = await merchant.http.post("/webhook-endpoints", json={"url": f"https://{host}/hooks"})
    assert answer.status_code == 400
    assert failures(answer) == [("url", "invalid")]
