"""Tests of webhooks in the merchant's dashboard."""

from __future__ import annotations

import json
from datetime import timedelta
from uuid import UUID

import pytest

from cuota.core.desk.role import Role
from cuota.db.privacy import retention
from cuota.db.webhook import replays
from cuota.flows.webhook.deliver_webhooks import publish_events
from support.api.receiver import receiving
from support.makers import Merchant
from support.pages.staff import Staff
from support.sending import deliver

DEAD = "http://127.0.0.1:9/hook"


async def failed_event(shop: Merchant) -> dict[str, str]:
    """An order whose first event has failed once at a dead endpoint."""
    made = await shop.http.post("/webhook-endpoints", json={"url": DEAD, "description": "stock"})
    assert made.status_code == 200
    order = await shop.approved()
    await publish_events(shop.service.context)
    await shop.service.context.pool.fetch(
        "UPDATE deliveries SET tries = 1, failed = 1 WHERE order_id = $1 AND sequence = 1",
        UUID(order["orderId"]),
    )
    return order


async def test_a_developer_sees_the_endpoints_and_the_failed_deliveries(staff: Staff) -> None:
    await failed_event(staff.shop)
    await staff.enter(Role.DEVELOPER)
    page = await staff.open("/desk/webhooks")
    for text in (DEAD, "stock", "order.created", "Failed once", "127.0.0.1:9"):
        assert text in page.text, text
    assert "Failing webhooks 1" in (await staff.open("/desk")).text


async def test_an_endpoint_with_failing_deliveries_is_failing_until_they_arrive(staff: Staff) -> None:
    await failed_event(staff.shop)
    await staff.shop.http.post("/webhook-endpoints", json={"url": f"{DEAD}/2", "description": "books"})
    await staff.enter(Role.DEVELOPER)

    page = await staff.open("/desk/webhooks")
    for shown in ("stock Failing", "books Active"):
        assert shown in page.text
    assert "StatusFailing" in (await staff.open(page.link("/hook"))).text
    await staff.service.context.pool.fetch(
        "UPDATE deliveries SET state = 'delivered', try_at = NULL, settled_at = now() WHERE merchant_id = $1",
        staff.shop.merchant_id,
    )
    assert "stock Active" in (await staff.open("/desk/webhooks")).text


async def test_a_manual_replay_of_an_event_is_in_the_audit_log(staff: Staff) -> None:
    order = await failed_event(staff.shop)
    await staff.enter()
    await staff.open(f"/desk/orders/{order['orderId']}")
    page = await staff.open(staff.page.link("order.created"))
    assert DEAD in page.text
    page = await staff.press(page.answer.url.path.rpartition("/")[2])
    assert "on its way again" in page.text
    assert "webhooks.replay" in (await staff.open("/desk/audit")).text


async def test_a_parked_delivery_has_the_same_name_as_in_the_api(staff: Staff) -> None:
    order = await failed_event(staff.shop)
    await staff.service.context.pool.fetch(
        "UPDATE deliveries SET state = 'parked', try_at = NULL, settled_at = now() WHERE order_id = $1 AND sequence = 1",
        UUID(order["orderId"]),
    )
    await staff.enter(Role.DEVELOPER)
    await staff.open(f"/desk/orders/{order['orderId']}")
    assert "Parked" in (await staff.open(staff.page.link("order.created"))).text


async def test_events_that_an_outage_of_days_has_parked_are_not_said_to_be_delivered(staff: Staff) -> None:
    pool, merchant_id = staff.service.context.pool, staff.shop.merchant_id
    order = await failed_event(staff.shop)
    await pool.fetch(
        """UPDATE deliveries SET state = 'parked', try_at = NULL, settled_at = $2, tries = 10, failed = 10
            WHERE merchant_id = $1""",
        merchant_id,
        staff.service.context.now(),
    )
    await staff.enter(Role.DEVELOPER)
    home = (await staff.open("/desk")).text
    assert "all were delivered" not in home
    assert "2 more parked: send them again" in home
    page = await staff.open("/desk/webhooks")
    assert "Nothing fails" not in page.text
    for text in ("Parked", "order.created", "order.approved", "127.0.0.1:9"):
        assert text in page.text, text
    (endpoint,) = (await staff.shop.http.get("/webhook-endpoints")).json()["endpoints"]
    assert "order.approved" in (await staff.open(f"/desk/endpoints/{endpoint['id']}")).text
    # The developer sends one of them again. The other is not shown for ever: the shop may have read it from the feed.
    page = await staff.open("/desk/webhooks")
    page = await staff.open(page.link("order.created"))
    assert "on its way again" in (await staff.press(page.answer.url.path.rpartition("/")[2])).text
    assert "1 more parked" in (await staff.open("/desk")).text
    await pool.fetch(
        "UPDATE deliveries SET settled_at = $3 WHERE merchant_id = $1 AND order_id = $2 AND state = 'parked'",
        merchant_id,
        UUID(order["orderId"]),
        staff.service.context.now() - timedelta(days=31),
    )
    assert "all were delivered" in (await staff.open("/desk")).text


async def test_after_an_outage_all_parked_events_and_no_others_are_sent_again_with_one_button(
    staff: Staff, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replays, "POSITIONS_AT_ONCE", 1)
    pool, shop = staff.service.context.pool, staff.shop
    async with receiving() as receiver:
        made = await shop.http.post("/webhook-endpoints", json={"url": receiver.url})
        assert made.status_code == 200
        arrived, missed = await shop.approved(), await shop.approved()
        await deliver(shop)
        await pool.fetch(
            "UPDATE deliveries SET state = 'parked', tries = 10, failed = 10, settled_at = $2 WHERE order_id = $1",
            UUID(missed["orderId"]),
            shop.service.context.now(),
        )
        await staff.enter(Role.DEVELOPER)
        await staff.open("/desk/webhooks")
        page = await staff.press("parked")
        assert "on their way again" in page.text
        before = len(receiver.got)
        await deliver(shop)
        again = [json.loads(body) for _, body in receiver.got[before:]]
    assert [(each["orderId"], each["sequence"]) for each in again] == [
        (missed["orderId"], 1),
        (missed["orderId"], 2),
    ]
    assert "all were delivered" in (await staff.open("/desk")).text
    await staff.enter()
    assert "webhooks.replay" in (await staff.open("/desk/audit")).text
    assert arrived["orderId"] not in {each["orderId"] for each in again}


async def test_without_webhooks_the_page_says_so(staff: Staff) -> None:
    await staff.enter()
    page = await staff.open("/desk/webhooks")
    assert "No endpoint is registered" in page.text
    assert "Nothing fails" in page.text


async def test_support_people_see_no_webhooks(staff: Staff) -> None:
    order = await failed_event(staff.shop)
    await staff.enter(Role.SUPPORT)
    page = await staff.open(f"/desk/orders/{order['orderId']}")
    assert "127.0.0.1:9" not in page.text
    assert (await staff.open("/desk/webhooks")).status == 403


async def test_an_event_whose_deliveries_were_deleted_is_still_listed_and_can_be_sent_again(
    staff: Staff,
) -> None:
    context, shop = staff.service.context, staff.shop
    async with receiving() as receiver:
        made = (await shop.http.post("/webhook-endpoints", json={"url": receiver.url})).json()
        order = await shop.approved()
        await deliver(shop)
        later = context.now() + timedelta(minutes=1)
        assert await context.pool.fetch(retention._ATTEMPTS, shop.merchant_id, later, 200)
        await staff.enter()
        assert "No longer kept" in (await staff.open(f"/desk/orders/{order['orderId']}")).text
        address = staff.page.link("order.created")
        page = await staff.open(address)
        assert "were deleted after they had arrived" in page.text
        assert "has no receiver" not in page.text
        page = await staff.press(page.answer.url.path.rpartition("/")[2])
        assert "on its way again" in page.text
        assert receiver.url in page.text
        await deliver(shop)
        assert await context.pool.fetch(retention._ATTEMPTS, shop.merchant_id, later, 200)
        await shop.http.delete(f"/webhook-endpoints/{made['id']}")
        page = await staff.open(address)
        page = await staff.press(page.answer.url.path.rpartition("/")[2])
        assert "Nothing was sent" in page.text


async def test_the_failing_deliveries_are_not_hidden_by_the_backlog_of_a_paused_endpoint(
    staff: Staff,
) -> None:
    shop = staff.shop
    paused = (await shop.http.post("/webhook-endpoints", json={"url": "http://127.0.0.1:9/paused"})).json()
    await failed_event(shop)
    # The pause lasted for thousands of events. The ids of endpoints increase, so the paused one comes first.
    pool = shop.service.context.pool
    await pool.fetch(
        """INSERT INTO deliveries (merchant_id, order_id, sequence, receiver, position, url, host, state, try_at, created_at)
            SELECT merchant_id, gen_random_uuid(), 1, receiver, position + n, url, host, 'pending', try_at, created_at
            FROM deliveries, generate_series(1, 6000) n WHERE merchant_id = $1 AND receiver = $2 AND sequence = 1""",
        shop.merchant_id,
        UUID(paused["id"]),
    )
    await pool.fetch(
        "UPDATE deliveries SET failed = 0 WHERE merchant_id = $1 AND receiver = $2",
        shop.merchant_id,
        UUID(paused["id"]),
    )
    await staff.enter()
    assert "Failing webhooks 1" in (await staff.open("/desk")).text
    page = await staff.open("/desk/webhooks")
    assert "Failed once" in page.text
    assert "Nothing fails" not in page.text


async def test_an_order_with_very_many_deliveries_lists_the_newest_and_says_so(staff: Staff) -> None:
    order = await failed_event(staff.shop)
    await staff.service.context.pool.fetch(
        """INSERT INTO deliveries (merchant_id, order_id, sequence, receiver, position, url, host, state, created_at)
            SELECT d.merchant_id, d.order_id, d.sequence, gen_random_uuid(), d.position, 'http://many.example/', 'many.example',
                'delivered', d.created_at FROM deliveries d, generate_series(1, 200) n WHERE d.order_id = $1 AND d.sequence = 1""",
        UUID(order["orderId"]),
    )
    await staff.enter()
    page = await staff.open(f"/desk/orders/{order['orderId']}")
    assert "Only the newest 200 deliveries of this order are listed." in page.text
    assert "order.approved" in page.answer.text.partition("hooks-title")[2].partition("time-title")[0]
