"""An event of a card processor is stored once and applied once, even if events are out of order, repeated, or never
delivered."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import asyncpg
import pytest

from cuota.db.plan import charges, rail_figures
from cuota.db.verify.recalculate import verify
from cuota.flows.order.return_money import return_money
from cuota.flows.plan.apply_card_events import apply_card_events
from cuota.flows.plan.collect_installments import collect
from cuota.flows.plan.fetch_card_events import fetch_card_events
from cuota.flows.plan.store_card_event import store_card_event
from cuota.rails.card.protocol import Card, CardEvent, CardEventKind, ChargeRequest
from support.flows.interrupted import CutPool, FlakyRail, with_rail
from support.own_service import Own


async def paid_order(own: Own, *, back: bool = False) -> tuple[UUID, UUID]:
    """Make an approved order of 100.00. With `back`, 15.00 of it went back to the card."""
    order = await own.auto_merchant.approved("100.00")
    if back:
        assert (await own.auto_merchant.move(order, "refund", "90.00")).status_code == 200
        assert await return_money(own.context) == 1
    async with own.owner() as owner:
        row = await owner.fetchrow(
            "SELECT merchant_id, order_id FROM orders WHERE order_id = $1", UUID(order["orderId"])
        )
    return row["merchant_id"], row["order_id"]


async def value(own: Own, sql: str, *given: Any) -> Any:
    async with own.owner() as owner:
        return await owner.fetchval(sql, *given)


def event(
    own: Own, kind: CardEventKind, ids: tuple[UUID, UUID], name: str = "evt_1", **more: Any
) -> CardEvent:
    return CardEvent(name, kind, own.context.now(), *ids, **more)


async def post(own: Own, headers: dict[str, str], body: bytes) -> Any:
    async with own.service.client() as http:
        return await http.post("/rails/card/events", headers=headers, content=body)


async def test_a_signed_event_of_the_processor_is_stored_once_and_an_unsigned_event_never(own: Own) -> None:
    merchant_id, order_id = await paid_order(own)
    sandbox = own.context.rails.card.sandbox
    assert sandbox is not None
    pending = await value(own, "SELECT charge_id FROM charges")
    async with own.owner() as owner:
        row = await owner.fetchrow("SELECT * FROM charges")
    asked = ChargeRequest(pending, row["card_token"], row["amount"], "USD", merchant_id, order_id)
    headers, body = sandbox.sign_event(asked)
    for _ in range(2):
        assert (await post(own, headers, body)).status_code == 200
    assert await value(own, "SELECT count(*) FROM card_events") == 1
    changed = await post(own, headers, body + b" ")
    assert changed.status_code == 400
    assert "signing secret" in changed.text
    assert (await post(own, {}, b"")).status_code == 400
    assert await value(own, "SELECT count(*) FROM card_events") == 1
    other_headers, other = sandbox.sign_event(replace(asked, order_id=own.context.new_id()))
    assert (await post(own, other_headers, other)).status_code == 200
    assert await value(own, "SELECT count(*) FROM card_events") == 1
    assert await apply_card_events(own.context) == 1
    assert await apply_card_events(own.context) == 0


async def test_an_event_about_an_unknown_payment_is_not_stored(own: Own) -> None:
    nobody = CardEvent("evt_1", CardEventKind.CHARGE_CHANGED, own.context.now())
    assert not await store_card_event(own.context, "sandbox", nobody)


async def test_a_changed_charge_is_looked_up_and_recorded_once(own: Own) -> None:
    ids = await paid_order(own)
    context = with_rail(own.context, FlakyRail(own.context.rails.card, lost=1))
    async with own.service.clock.moved(days=15):
        await collect(context, *ids)  # a reminder may be sent first
        await collect(context, *ids)
        pending = await charges.pending(own.context.pool, *ids)
        assert pending is not None
        changed = event(own, CardEventKind.CHARGE_CHANGED, ids, charge_id=pending.charge.charge_id)
        for name in ("evt_1", "evt_2"):
            assert await store_card_event(own.context, "sandbox", replace(changed, event_id=name))
            assert not await store_card_event(own.context, "sandbox", replace(changed, event_id=name))
        assert sum(await asyncio.gather(*(apply_card_events(own.context) for _ in range(3)))) == 2
    assert (
        await value(own, "SELECT state FROM charges WHERE charge_id = $1", pending.charge.charge_id)
        == "succeeded"
    )
    assert await value(own, "SELECT count(*) FROM card_simulator.charges") == 2
    assert (await verify(own.context.pool)).disagreements == []


async def test_a_card_refund_that_fails_later_is_owed_to_the_consumer_again(own: Own) -> None:
    ids = await paid_order(own, back=True)
    refund = await value(own, "SELECT card_refund_id FROM card_refunds")
    failed = event(
        own, CardEventKind.REFUND_FAILED, ids, refund_id=refund, amount=1500, reason="account_closed"
    )
    for name in ("evt_1", "evt_2"):
        assert await store_card_event(own.context, "sandbox", replace(failed, event_id=name))
    assert await apply_card_events(replace(own.context, pool=CutPool(own, "after"))) == 2
    async with own.service.clock.moved(minutes=2):
        await apply_card_events(own.context)
    assert await value(own, "SELECT (state, reason) FROM card_refunds") == ("failed", "account_closed")
    due = "SELECT sum(CASE WHEN credit = 'consumer_refund_due' THEN amount ELSE -amount END) FROM transfers"
    assert await value(own, f"{due} WHERE 'consumer_refund_due' IN (debit, credit)") == 1500
    assert await value(own, "SELECT count(*) FROM transfers WHERE posting = 'card_refund_failed'") == 1
    assert await value(own, "SELECT count(*) FROM card_events WHERE applied_at IS NULL") == 0
    assert (await verify(own.context.pool)).disagreements == []
    async with own.service.clock.moved(days=1):
        assert await return_money(own.context) == 0


async def test_an_event_whose_worker_was_killed_is_applied_by_the_next_worker(own: Own) -> None:
    ids = await paid_order(own, back=True)
    refund = await value(own, "SELECT card_refund_id FROM card_refunds")
    failed = event(own, CardEventKind.REFUND_FAILED, ids, refund_id=refund)
    assert await store_card_event(own.context, "sandbox", failed)
    # A worker claimed the event, recorded the failure, and was killed before it noted that the event was applied.
    assert await apply_card_events(own.context) == 1
    async with own.owner() as owner:
        await owner.execute("UPDATE card_events SET applied_at = NULL, try_at = $1", own.context.now())
    assert await apply_card_events(own.context) == 1
    assert await value(own, "SELECT count(*) FROM transfers WHERE posting = 'card_refund_failed'") == 1
    assert (await verify(own.context.pool)).disagreements == []


async def test_a_renewed_card_pays_the_plan_unless_the_consumer_has_changed_it(own: Own) -> None:
    kept, changed = await paid_order(own), await paid_order(own)
    token = "SELECT card_token FROM charges WHERE order_id = $1"
    for name, ids in (("evt_1", kept), ("evt_2", changed)):
        own_token = (await value(own, token, ids[1])).removeprefix("sandbox:")
        newer = event(own, CardEventKind.CARD_UPDATED, ids, name, card=Card(own_token, "visa", "4444"))
        assert await store_card_event(own.context, "sandbox", newer)
        older = replace(
            newer,
            event_id=f"{name}_older",
            at=newer.at - timedelta(days=1),
            card=Card(own_token, "visa", "1111"),
        )
        if ids == kept:
            assert await apply_card_events(own.context) == 1
        else:
            async with own.owner() as owner:
                await owner.execute(
                    "UPDATE plans SET card_token = 'sandbox:other', card_brand = 'visa', card_last4 = '0005' WHERE order_id = $1",
                    ids[1],
                )
        assert await store_card_event(own.context, "sandbox", older)
        assert await apply_card_events(own.context) > 0
    last4 = "SELECT (card_token = $2, card_last4) FROM plans WHERE order_id = $1"
    assert await value(own, last4, kept[1], await value(own, token, kept[1])) == (True, "4444")
    assert await value(own, last4, changed[1], "sandbox:other") == (True, "0005")


async def test_events_that_were_never_delivered_are_fetched_once_by_one_worker(own: Own) -> None:
    await fetch_card_events(own.context)
    async with own.owner() as owner:
        ids = await paid_order(own)
        await owner.execute("UPDATE card_simulator.cards SET behaviour = 'disputed'")
        # The rail of this fixture uses the real clock.
        await owner.execute(
            "UPDATE card_simulator.charges SET created_at = now() - interval '7 days 1 minute'"
        )
    async with own.service.clock.moved(days=8):
        found = await asyncio.gather(*(fetch_card_events(own.context) for _ in range(3)))
        assert sorted(found) == [0, 0, 1]
        assert await fetch_card_events(own.context) == 0
        assert await apply_card_events(own.context) == 1
    assert await value(own, "SELECT (kind, order_id, amount) FROM card_events") == (
        "dispute.opened",
        ids[1],
        2500,
    )


async def test_a_refund_made_at_the_processor_s_website_is_counted_and_listed_and_changes_no_plan(
    own: Own,
) -> None:
    ids = await paid_order(own)
    counted: list[tuple[str, str]] = []
    context = replace(own.context, card_event=lambda rail, kind: counted.append((rail, kind)))
    elsewhere = event(own, CardEventKind.REFUNDED_ELSEWHERE, ids, amount=500, reference="re_1")
    assert await store_card_event(context, "sandbox", elsewhere)
    assert await apply_card_events(context) == 1
    assert await apply_card_events(context) == 0
    assert counted == [("sandbox", "refund.elsewhere")]
    (listed,) = await rail_figures.money_back(own.context.pool, 10)
    assert (listed.order_id, listed.amount, listed.reference) == (ids[1], 500, "re_1")
    assert await value(own, "SELECT count(*) FROM card_refunds") == 0
    assert (await verify(own.context.pool)).disagreements == []


async def test_the_database_allows_a_successful_card_refund_to_fail_later_and_no_other_change(
    own: Own,
) -> None:
    await paid_order(own, back=True)
    change = "UPDATE card_refunds SET state = '{}'"
    async with own.owner() as owner:
        with pytest.raises(asyncpg.CheckViolationError):
            await owner.execute(change.format("pending"))
        await owner.execute(change.format("failed"))
        for state in ("succeeded", "pending"):
            with pytest.raises(asyncpg.CheckViolationError):
                await owner.execute(change.format(state))
