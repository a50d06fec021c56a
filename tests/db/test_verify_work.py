"""`cuota verify` finds work that no job would ever find: an event, a charge, a refund or the end of an authorization."""

from __future__ import annotations

from datetime import timedelta

import pytest

from cuota.db.verify.recalculate import verify
from cuota.db.webhook.events import OWN_ADDRESS
from cuota.flows.webhook.deliver_webhooks import publish_events
from support.disputes import disputed
from support.flows.due import settle_all_due
from support.makers import complete, order_body
from support.own_service import Own


async def found(own: Own, *statements: str) -> list[tuple[str, str]]:
    """Alter rows without triggers, and return what `verify` finds, as (order id, row)."""
    assert (await verify(own.context.pool)).disagreements == []
    async with own.owner() as owner:
        await owner.execute("SET session_replication_role = replica")
        for statement in statements:
            tag = await owner.execute(statement)
            assert not tag.endswith(" 0"), f"{statement} altered nothing: {tag}"
    report = await verify(own.context.pool)
    return [(str(each.order_id), each.row.split()[0]) for each in report.disagreements]


async def test_an_event_that_is_lost_before_it_is_published_is_found(own: Own) -> None:
    order = await own.auto_merchant.approved("100.00")
    assert await found(own, "DELETE FROM outbox WHERE sequence = 2") == [(order["orderId"], "events")]


async def test_an_event_that_is_missing_in_the_feed_is_found(own: Own) -> None:
    order = await own.auto_merchant.approved("100.00")
    await publish_events(own.context)
    assert (order["orderId"], "events") in await found(own, "DELETE FROM feed WHERE sequence = 3")


async def test_an_event_that_would_be_published_a_second_time_is_found(own: Own) -> None:
    order = await own.auto_merchant.approved("100.00")
    await publish_events(own.context)
    again = "INSERT INTO outbox SELECT merchant_id, order_id, sequence FROM feed WHERE sequence = 1"
    assert await found(own, again) == [(order["orderId"], "events")]


async def test_a_lost_delivery_of_a_published_event_is_found(own: Own) -> None:
    url = "https://shop.example/hooks"
    answer = await own.auto_merchant.http.post("/webhook-endpoints", json={"url": url})
    assert answer.status_code == 200
    own.service.clock.ahead += timedelta(hours=2)
    addresses = order_body()["merchant"]
    assert isinstance(addresses, dict)
    order = await own.auto_merchant.approved("100.00", merchant={**addresses, "statusCallbackUrl": url})
    await publish_events(own.context)
    lost = (
        f"DELETE FROM deliveries WHERE sequence = 2 AND receiver <> '{OWN_ADDRESS}'",
        f"DELETE FROM deliveries WHERE sequence = 3 AND receiver = '{OWN_ADDRESS}'",
    )
    assert await found(own, *lost) == [(order["orderId"], "events")] * 2


async def test_an_event_without_deliveries_is_not_reported_if_it_had_no_receiver_or_is_old(own: Own) -> None:
    await own.auto_merchant.approved("100.00")
    await publish_events(own.context)
    answer = await own.auto_merchant.http.post(
        "/webhook-endpoints", json={"url": "https://shop.example/hooks"}
    )
    assert answer.status_code == 200
    assert (await verify(own.context.pool)).disagreements == []
    own.service.clock.ahead += timedelta(hours=2)
    await own.auto_merchant.approved("100.00")
    await publish_events(own.context)
    past = "created_at = created_at - interval '31 days'"
    changes = (f"UPDATE webhook_endpoints SET {past}", f"UPDATE events SET {past}", "DELETE FROM deliveries")
    assert await found(own, *changes) == []


@pytest.mark.parametrize(
    ("change", "row"),
    [
        ("UPDATE orders SET due_at = NULL", "orders.due_at"),
        ("UPDATE orders SET due_at = greatest(due_at, now()) + interval '2 hours'", "orders.due_at"),
        ("UPDATE orders SET authorization_expires_at = NULL", "orders.authorization_expires_at"),
        ("UPDATE orders SET charging = gen_random_uuid(), charging_since = now()", "orders.charging"),
        ("UPDATE charges SET state = 'pending'", "orders.charging"),
        ("UPDATE installments SET charge_at = NULL, remind_at = NULL WHERE number = 2", "installments"),
    ],
)
async def test_work_without_a_time_is_found(own: Own, change: str, row: str) -> None:
    order = await own.merchant.approved("100.00")
    assert (order["orderId"], row) in await found(own, change)


@pytest.mark.parametrize("later", ["interval '3 hours'", "interval '90 days', failures = 1"])
async def test_a_payment_whose_charge_is_later_than_any_rule_allows_is_found(own: Own, later: str) -> None:
    order = await own.merchant.approved("100.00")
    change = f"UPDATE installments SET charge_at = charge_at + {later} WHERE number = 4"
    assert await found(own, change) == [(order["orderId"], "installments")]


async def test_a_payment_that_is_retried_or_waits_for_a_card_that_was_declined_too_often_is_no_disagreement(
    own: Own,
) -> None:
    """The networks let a card wait for up to 30 days."""
    for card in ("4000 0000 0000 0341", "5555 5555 5555 4444"):
        order = await own.auto_merchant.create("100.00")
        await complete(own.service, own.auto_merchant.merchant_id, order, card)
    async with own.owner() as owner:
        await owner.execute(
            """INSERT INTO card_declines (card_hash, charge_hash, at, final)
            SELECT DISTINCT card_hash, int4send(n), $1::timestamptz, false FROM plans, generate_series(1, 15) n
            WHERE card_hash IS NOT NULL""",
            own.context.now() + timedelta(days=13),
        )
        latest, waits = set(), "SELECT coalesce(max(charge_at::date - due_on), 0) FROM installments"
        for day in range(14, 62, 2):
            own.service.clock.ahead = timedelta(days=day, hours=12)
            await owner.execute("UPDATE sandbox_clock SET ahead = $1", own.service.clock.ahead)
            await settle_all_due(own.context)
            assert (await verify(own.context.pool)).disagreements == []
            latest.add(await owner.fetchval(waits))
    assert max(latest) > 20


async def test_a_refund_to_a_card_that_would_never_be_sent_is_found(own: Own) -> None:
    order = await own.auto_merchant.approved("100.00")
    assert (await own.auto_merchant.move(order, "refund", "90.00")).status_code == 200
    never = "UPDATE card_refunds SET try_at = NULL"
    assert await found(own, never) == [(order["orderId"], "card_refunds")]


async def test_a_payment_that_waits_for_another_card_or_for_a_dispute_is_no_disagreement(own: Own) -> None:
    order = await own.auto_merchant.approved("100.00")
    await disputed(own.auto_merchant, order, 10000)
    failing = await own.merchant.approved("100.00")
    async with own.owner() as owner:
        await owner.execute("SET session_replication_role = replica")
        await owner.execute(
            "UPDATE installments SET charge_at = NULL, failures = 1 WHERE order_id = $1::uuid AND number = 2",
            failing["orderId"],
        )
    rows = {each.row for each in (await verify(own.context.pool)).disagreements}
    assert not any(row.startswith("installments") for row in rows)


async def test_an_order_that_was_postponed_by_a_minute_is_no_disagreement(own: Own) -> None:
    order = await own.merchant.approved("100.00")
    async with own.owner() as owner:
        await owner.execute("SET session_replication_role = replica")
        await owner.execute(
            """UPDATE orders SET collect_at = now() - interval '3 days', authorization_expires_at = now() + interval '1 day',
                warned = 1, due_at = now() + interval '1 minute' WHERE order_id = $1::uuid""",
            order["orderId"],
        )
    rows = {each.row for each in (await verify(own.context.pool)).disagreements}
    assert "orders.due_at" not in rows
