"""A change of a plan in hardship is stored with its text and sent to the consumer, and `cuota verify` finds no error."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import pytest

from cuota.core.order.change_plan import BUSY, DISPUTED
from cuota.core.plan.change import ChangeKind
from cuota.core.plan.hardship import (
    CannotChange,
    MoveDates,
    PausePlan,
    SmallerPayments,
    WaiveFee,
)
from cuota.db.payout.books import balances
from cuota.flows.dispute.notice_return import notice_return
from cuota.flows.plan.change_plan import preview_change
from cuota.flows.plan.send_messages import send_messages
from cuota.rails import inbox
from cuota.work.due_orders import settle_due_orders
from support.disputes import disputed
from support.flows.changing import PHONE, change, mark_of, order_of, plan_of, whole
from support.flows.collecting import agreed, charged, set_clock
from support.makers import complete
from support.own_service import Own

LOST_LATER = "4000 0000 0000 9987"


async def test_smaller_payments_are_collected_to_the_last_one_and_the_books_are_exact(own: Own) -> None:
    order_id = await order_of(own)
    first = (await agreed(own, order_id)).plan[1].due_on
    made = await change(own, order_id, SmallerPayments(6, 14, first))
    assert await plan_of(own, order_id) == [(1, 2500), *((number, 1250) for number in range(2, 8))]
    assert (made.number, made.kind, made.payments) == (1, ChangeKind.SMALLER_PAYMENTS, 7)
    await whole(own)
    while (at := (await agreed(own, order_id)).order.collect_at) is not None:
        set_clock(own, at)
        await settle_due_orders(own.context)
    assert [number for number, *_ in await charged(own)] == [1, 2, 3, 4, 5, 6, 7]
    await whole(own)
    # The receipt of the last payment waits for the morning.
    set_clock(own, own.context.now() + timedelta(hours=12))
    while await send_messages(own.context):
        pass
    texts = [each.text for each in await inbox.look(own.context.pool, limit=100)]
    assert any("payment 7 of 7" in text for text in texts)


async def test_nothing_is_charged_during_a_pause_and_reminders_name_the_change(own: Own) -> None:
    order_id = await order_of(own)
    before = (await agreed(own, order_id)).plan
    await change(own, order_id, PausePlan(30))
    after = (await agreed(own, order_id)).plan
    assert [item.due_on for item in after[1:]] == [item.due_on + timedelta(days=30) for item in before[1:]]
    for item in before[1:3]:
        assert item.charge_at is not None
        set_clock(own, item.charge_at)
        await settle_due_orders(own.context)
    assert [number for number, *_ in await charged(own)] == [1]
    at = (await agreed(own, order_id)).order.collect_at
    assert at is not None
    set_clock(own, at)
    await settle_due_orders(own.context)
    await send_messages(own.context)
    texts = [each.text for each in await inbox.look(own.context.pool, limit=100)]
    assert any("we charge $25.00" in text and "that we agreed on with you" in text for text in texts)
    await whole(own)


async def test_the_message_has_the_new_plan_and_the_change_stores_the_time_of_the_message(own: Own) -> None:
    order_id = await order_of(own)
    days = {item.number: item.due_on + timedelta(days=7) for item in (await agreed(own, order_id)).plan[1:]}
    made = await change(own, order_id, MoveDates(days))
    assert made.told_at is None
    set_clock(own, own.context.now() + timedelta(hours=14))
    await send_messages(own.context)
    shown = await preview_change(own.context, own.auto_merchant.merchant_id, order_id, PausePlan(1))
    kept = shown.found.before.earlier[0]
    assert kept.told_at is not None
    assert kept.text == made.text
    told = next(
        each
        for each in await inbox.look(own.context.pool, limit=100)
        if "has changed" in (each.subject or "")
    )
    assert "more time" in told.text
    await whole(own)


async def test_cuota_bears_a_waived_fee_and_the_merchant_keeps_its_money(own: Own) -> None:
    order_id = await order_of(own, fee="8.00")
    made = await change(own, order_id, WaiveFee())
    assert made.waived == 600
    assert await plan_of(own, order_id) == [(1, 2700), (2, 2500), (3, 2500), (4, 2500)]
    found = {
        each.account.value: each.balance
        for each in await balances(own.context.pool, own.context.now() + timedelta(days=1))
    }
    assert found["plan_fees"] == -200
    await whole(own)


async def test_after_a_waiver_a_full_refund_returns_only_the_fee_that_was_paid(own: Own) -> None:
    order_id = await order_of(own, fee="8.00")
    await change(own, order_id, WaiveFee())
    answer = await own.auto_merchant.move({"orderId": str(order_id)}, "refund", "100.00")
    assert answer.status_code == 200
    async with own.owner() as owner:
        assert await owner.fetchval("SELECT sum(amount) FROM card_refunds") == 2700
    await whole(own)


async def test_a_refund_after_smaller_payments_reduces_the_last_payments_first(own: Own) -> None:
    order_id = await order_of(own)
    first = (await agreed(own, order_id)).plan[1].due_on
    await change(own, order_id, SmallerPayments(6, 14, first))
    await own.auto_merchant.move({"orderId": str(order_id)}, "refund", "20.00")
    assert await plan_of(own, order_id) == [(1, 2500), *((n, 1250) for n in (2, 3, 4, 5)), (6, 500), (7, 0)]
    await whole(own)
    await change(own, order_id, PausePlan(3))
    await whole(own)


async def test_a_plan_cannot_be_changed_during_a_charge_or_a_dispute(own: Own) -> None:
    order_id = await order_of(own)
    mark = await mark_of(own, order_id, PausePlan(7))
    async with own.owner() as owner:
        await owner.execute("UPDATE orders SET charging = gen_random_uuid(), charging_since = now()")
    with pytest.raises(CannotChange, match=BUSY[:30]):
        await change(own, order_id, PausePlan(7), mark)
    async with own.owner() as owner:
        await owner.execute("UPDATE orders SET charging = NULL, charging_since = NULL")
    await disputed(own.auto_merchant, {"orderId": str(order_id)}, 1000)
    with pytest.raises(CannotChange, match=DISPUTED[:30]):
        await change(own, order_id, PausePlan(7), mark)


async def test_a_return_notice_does_not_move_a_payment_back_to_an_earlier_day(own: Own) -> None:
    order_id = await order_of(own)
    await notice_return(own.context, own.auto_merchant.merchant_id, order_id, "UPS", "1Z999")
    await change(own, order_id, PausePlan(20))
    days = [item.due_on for item in (await agreed(own, order_id)).plan]
    await own.auto_merchant.move({"orderId": str(order_id)}, "refund", "10.00")
    assert [item.due_on for item in (await agreed(own, order_id)).plan] == days
    await whole(own)


async def test_the_last_payment_can_move_alone_after_a_return_notice(own: Own) -> None:
    order_id = await order_of(own)
    set_clock(own, own.context.now() + timedelta(days=10))
    await notice_return(own.context, own.auto_merchant.merchant_id, order_id, "UPS", "1Z999")
    held, following, last = [item.due_on for item in (await agreed(own, order_id)).plan[1:]]
    assert held > following
    later = last + timedelta(days=5)
    await change(own, order_id, MoveDates({4: later}))
    assert [item.due_on for item in (await agreed(own, order_id)).plan[1:]] == [held, following, later]
    await whole(own)


async def test_a_change_does_not_allow_charges_to_a_card_that_must_not_be_charged(own: Own) -> None:
    created = await own.auto_merchant.create("100.00")
    await complete(own.service, own.auto_merchant.merchant_id, created, LOST_LATER, phone=PHONE)
    order_id = UUID(created["orderId"])
    while (
        at := (await agreed(own, order_id)).order.collect_at
    ) is not None and at < own.context.now() + timedelta(days=15):
        set_clock(own, at)
        await settle_due_orders(own.context)
    assert (await agreed(own, order_id)).plan[1].state == "overdue"
    before = await charged(own)
    await change(own, order_id, PausePlan(20))
    assert [item.state for item in (await agreed(own, order_id)).plan] == ["paid", *["scheduled"] * 3]
    due = (await agreed(own, order_id)).plan[1].charge_at
    assert due is not None
    set_clock(own, due)
    for _ in range(4):
        await settle_due_orders(own.context)
    assert (await agreed(own, order_id)).plan[1].state == "overdue"
    assert await charged(own) == before, "the bank said never to try this card again"
    await whole(own)


async def test_a_change_of_another_order_or_of_an_order_without_a_plan_is_refused(own: Own) -> None:
    created = await own.auto_merchant.create("100.00")
    for merchant_id in (own.auto_merchant.merchant_id, own.merchant.merchant_id):
        with pytest.raises(CannotChange, match="no plan"):
            await preview_change(own.context, merchant_id, UUID(created["orderId"]), PausePlan(7))
