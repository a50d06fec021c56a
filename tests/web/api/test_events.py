"""The feed has every event once, with the fields of the contract and the order's state at that time."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from cuota.db.order.documents import encode
from cuota.flows.checkout.leave_checkout import lapse_order
from cuota.flows.context import Context
from cuota.flows.order.expire_authorizations import expire_authorization
from cuota.flows.webhook.deliver_webhooks import publish_events
from support.api.bodies import assert_refused, failures
from support.contract import read_json
from support.makers import PROFILE, Merchant, complete, make_merchant


async def feed(merchant: Merchant, limit: int = 100) -> list[dict[str, Any]]:
    """Return all of the merchant's events. Check each one against the schema of its type."""
    await publish_events(merchant.service.context)
    found: list[dict[str, Any]] = []
    more = True
    while more:
        after = found[-1]["id"] if found else ""
        answer = await merchant.http.get("/events", params={"after": after, "limit": limit})
        assert answer.status_code == 200, answer.text
        page = read_json(answer.content)
        found += [merchant.service.contract.check_event(encode(event)) for event in page["events"]]
        more = page["hasMore"]
    return found


async def of_order(merchant: Merchant, order: dict[str, Any]) -> list[dict[str, Any]]:
    return [event for event in await feed(merchant) if event["orderId"] == order["orderId"]]


def later(merchant: Merchant, **by: float) -> Context:
    ahead = timedelta(**by)
    return replace(merchant.service.context, now=lambda: datetime.now(UTC) + ahead)


def place(order: dict[str, Any]) -> UUID:
    return UUID(order["orderId"])


async def test_each_step_of_an_order_is_an_event_which_contains_the_order_as_get_order_returned_it_then(
    merchant: Merchant,
) -> None:
    seen = []
    order = await merchant.create("100.00", metadata={"cart": "c-1"})
    seen.append(await merchant.read(order))
    await complete(merchant.service, merchant.merchant_id, order)
    seen.append(await merchant.read(order))
    for operation, amount in (
        ("capture", "60.00"),
        ("void", "10.00"),
        ("refund", "5.00"),
        ("refund", "7.50"),
    ):
        assert (await merchant.move(order, operation, amount)).status_code == 200
        seen.append(await merchant.read(order))
    for days, hours in ((10, 0.1), (12, 0.1), (13, 0.1)):
        await expire_authorization(
            later(merchant, days=days, hours=hours), merchant.merchant_id, place(order)
        )
        seen.append(await merchant.read(order))
    events = await of_order(merchant, order)
    assert [(event["type"], event["amount"]) for event in events] == [
        ("order.created", 100), ("order.approved", 100), ("capture.completed", 60), ("void.completed", 10),
        ("refund.completed", 5), ("refund.completed", 7.5), ("authorization.expiring", 30),
        ("authorization.expiring", 30), ("authorization.expired", 30),
    ]  # fmt: skip
    assert [event["sequence"] for event in events] == list(range(1, 10))
    assert [event["order"] for event in events] == seen
    assert all(event["metadata"] == {"cart": "c-1"} for event in events)
    assert all(event["merchantReference"] == "A-1042" and event["test"] is True for event in events)
    assert events[1]["customer"]["lastName"] == PROFILE.surname
    assert [event["operation"] for event in events] == [
        None, "AuthorizeOrder", "CaptureOrder", "VoidOrder", "RefundOrder", "RefundOrder", None, None, "VoidOrder",
    ]  # fmt: skip


async def test_an_order_that_ended_without_a_payment_has_an_event(merchant: Merchant) -> None:
    declined, abandoned = await merchant.create("50.00"), await merchant.create("60.00")
    await complete(
        merchant.service, merchant.merchant_id, declined, profile=replace(PROFILE, surname="Declinetest")
    )
    await lapse_order(later(merchant, hours=2), merchant.merchant_id, place(abandoned))
    for order, type_ in ((declined, "order.declined"), (abandoned, "order.abandoned")):
        created, ended = await of_order(merchant, order)
        assert (created["type"], ended["type"], ended["success"]) == ("order.created", type_, False)
        assert ended["message"]
        assert ended["order"] == await merchant.read(order)


async def test_an_automatic_capture_has_a_separate_event(auto_merchant: Merchant) -> None:
    order = await auto_merchant.approved("80.00")
    events = await of_order(auto_merchant, order)
    assert [event["type"] for event in events] == ["order.created", "order.approved", "capture.completed"]
    assert events[-1]["order"] == await auto_merchant.read(order)


@pytest.mark.parametrize(
    ("operation", "code"),
    [
        ("capture", "capture_exceeds_authorized"),
        ("void", "void_exceeds_uncaptured"),
        ("refund", "refund_exceeds_captured"),
    ],
)
async def test_a_rejected_movement_has_one_event_and_a_repeated_reference_none(
    merchant: Merchant, operation: str, code: str
) -> None:
    order = await merchant.approved("100.00")
    assert (await merchant.move(order, "capture", "60.00")).status_code == 200
    before = await merchant.read(order)
    key = {"Idempotency-Key": f"{operation}-once"}
    refused = [await merchant.move(order, operation, "70.00", "r-1", headers=key) for _ in range(2)]
    assert refused[0].content == refused[1].content
    assert_refused(refused[0], 422, code)
    event = (await of_order(merchant, order))[-1]
    assert event["sequence"] == 4
    assert (event["type"], event["success"], event["amount"]) == (f"{operation}.rejected", False, 70)
    assert event["operation"] == f"{operation.capitalize()}Order"
    assert event["message"] == refused[0].json()["message"]
    assert event["order"] == before
    assert (await merchant.move(order, operation, "20.00", "r-1")).status_code == 200
    assert_refused(await merchant.move(order, operation, "20.00", "r-1"), 422, "duplicate_reference")
    types = [event["type"] for event in await of_order(merchant, order)]
    assert types[3:] == [f"{operation}.rejected", f"{operation}.completed"]


async def test_a_movement_on_an_order_that_is_not_approved_has_a_rejected_event(
    merchant: Merchant,
) -> None:
    order = await merchant.create()
    assert_refused(await merchant.move(order, "capture", "1.00"), 422, "order_not_completed")
    assert [event["type"] for event in await of_order(merchant, order)] == [
        "order.created",
        "capture.rejected",
    ]


async def test_an_impossibly_large_amount_is_refused_like_any_other(merchant: Merchant) -> None:
    order = await merchant.approved("10.00")
    assert_refused(await merchant.move(order, "capture", "9" * 18), 422, "capture_exceeds_authorized")
    largest = "92233720368547758"
    assert_refused(await merchant.move(order, "capture", largest), 422, "capture_exceeds_authorized")
    told = [event["amount"] for event in await of_order(merchant, order) if not event["success"]]
    assert told == [int(largest)]


async def test_a_dry_run_and_an_unreadable_call_are_no_events(merchant: Merchant) -> None:
    order = await merchant.approved("10.00")
    path, body = f"/order/{order['orderId']}/capture", {"amount": 70, "merchantReference": "x"}
    assert (await merchant.http.post(f"{path}?dryRun=true", json=body)).status_code == 422
    assert (await merchant.http.post(path, json={"amount": 1})).status_code == 422
    assert len(await of_order(merchant, order)) == 2


async def test_the_pages_of_the_feed_have_every_event_once_and_in_order_while_orders_are_being_paid(
    merchant: Merchant,
) -> None:
    orders = await asyncio.gather(*(merchant.approved("100.00") for _ in range(4)))
    writing = asyncio.gather(
        *(merchant.move(order, "capture", "1.00") for order in orders for _ in range(15)),
        *(merchant.move(order, "void", "200.00") for order in orders for _ in range(5)),
    )
    found: list[dict[str, Any]] = []

    async def read_on() -> None:
        while True:
            await publish_events(merchant.service.context)
            last = {"after": found[-1]["id"]} if found else {}
            page = (await merchant.http.get("/events", params={"limit": 3, **last})).json()
            found.extend(page["events"])
            if writing.done() and not page["hasMore"] and not page["events"]:
                return

    await asyncio.gather(writing, read_on())
    assert {answer.status_code for answer in writing.result()} == {200, 422}
    assert len({event["id"] for event in found}) == len(found) == 4 * (2 + 15 + 5)
    for order in orders:
        numbers = [event["sequence"] for event in found if event["orderId"] == order["orderId"]]
        assert numbers == list(range(1, 23))
    assert [event["id"] for event in found] == [event["id"] for event in await feed(merchant, 7)]


async def test_a_single_event_equals_the_one_in_the_feed_and_does_not_change_later(
    merchant: Merchant,
) -> None:
    order = await merchant.approved("100.00")
    approved = (await of_order(merchant, order))[1]
    first = await merchant.http.get(f"/events/{approved['id']}")
    await merchant.move(order, "capture", "100.00")
    await merchant.move(order, "refund", "40.00")
    again = await merchant.http.get(f"/events/{approved['id']}/")
    assert first.status_code == 200
    assert first.content == again.content
    assert first.json() == approved


async def test_another_merchant_s_event_gets_the_same_answer_as_an_unknown_event(merchant: Merchant) -> None:
    await merchant.create()
    (event,) = await feed(merchant)
    async with make_merchant(merchant.service) as other:
        assert await feed(other) == []
        shown = []
        for name in (event["id"], f"evt_{uuid4().hex}_1", f"{event['id']}0", event["id"].upper(), "x"):
            for answer in (
                await other.http.get(f"/events/{name}"),
                await other.http.get(f"/events/{name}/deliveries"),
                await other.http.post(f"/events/{name}/replay"),
            ):
                assert_refused(answer, 404, "not_found")
                shown.append(answer.json()["message"])
            after = await other.http.get("/events", params={"after": name})
            assert_refused(after, 400, "validation_failed")
            shown.append(after.json()["message"].replace("after ", ""))
        assert len(set(shown)) == 2
    assert (await merchant.http.get(f"/events/{event['id']}")).status_code == 200


@pytest.mark.parametrize(
    ("query", "field"),
    [
        *((f"limit={text}", "limit") for text in ("0", "101", "-1", "1.5", "ten", "", "%D9%A1", "+5", "05")),
        ("limit=00000000199999", "limit"),
        ("limit=" + "1" * 5000, "limit"),
        ("after=nothing", "after"),
        ("after=evt_%2B123456789abcdef0123456789abcdef_1", "after"),
    ],
)
async def test_the_error_names_a_bad_limit_or_after(merchant: Merchant, query: str, field: str) -> None:
    answer = await merchant.http.get(f"/events?{query}")
    assert_refused(answer, 400, "validation_failed")
    assert failures(answer) == [(field, "invalid")]
    assert answer.json()["message"].startswith(field)


@pytest.mark.parametrize(
    ("query", "failure"),
    [
        ("limit=5&limit=6", ("limit", "duplicate")),
        ("after=evt_1&after=evt_2", ("after", "duplicate")),
        ("cursor=evt_1&limit=5", ("cursor", "unknown_parameter")),
        ("aftr=evt_1", ("aftr", "unknown_parameter")),
    ],
)
async def test_an_unknown_parameter_is_refused_because_the_feed_would_begin_again(
    merchant: Merchant, query: str, failure: tuple[str, str]
) -> None:
    answer = await merchant.http.get(f"/events?{query}")
    assert_refused(answer, 400, "malformed_request")
    assert failures(answer) == [failure]


async def test_the_path_events_replay_is_not_read_as_an_event_id(merchant: Merchant) -> None:
    answer = await merchant.http.get("/events/replay")
    assert_refused(answer, 405, "method_not_allowed")
    assert answer.headers["allow"] == "POST"


async def test_without_a_token_there_are_no_events(merchant: Merchant) -> None:
    async with merchant.service.client() as nobody:
        for path in ("/events", "/webhook-endpoints"):
            assert_refused(await nobody.get(path), 401, "unauthorized")


async def test_an_order_s_events_are_in_order_even_if_two_clocks_differ(merchant: Merchant) -> None:
    service = merchant.service
    async with service.clock.moved(hours=1):
        order = await merchant.approved("100.00")
    await merchant.move(order, "capture", "10.00")
    await publish_events(service.context)
    events = (await merchant.http.get("/events")).json()["events"]
    assert [event["sequence"] for event in events] == [1, 2, 3]
    assert events[2]["timestamp"] < events[1]["timestamp"]
