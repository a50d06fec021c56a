"""Installments are charged on their days, retried after a failure, and never charged twice, whatever answers are
lost."""

from __future__ import annotations

import asyncio
import itertools
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from cuota.core.checkout.card import read_card
from cuota.core.installment import plan_state
from cuota.db.verify.recalculate import verify
from cuota.flows.plan.collect_installments import collect
from cuota.flows.plan.limit_asks import Asker
from cuota.flows.plan.manage_plan import change_card, find_plan, overdue, pay_early
from cuota.flows.plan.send_messages import send_messages
from cuota.work.card_refunds import return_due_money
from cuota.work.due_orders import settle_due_orders
from support.card import token_of
from support.flows.collecting import ZONE, agreed, charged, set_clock
from support.flows.due import settle_all_due
from support.flows.interrupted import FlakyRail, with_rail
from support.makers import complete
from support.own_service import Own

PAYS, FAILS_LATER, LOST_LATER = "4242 4242 4242 4242", "4000 0000 0000 0341", "4000 0000 0000 9987"


async def agreed_order(own: Own, card: str = PAYS, amount: str = "100.00") -> UUID:
    """Make an approved and captured order whose first installment was paid by this card."""
    created = await own.auto_merchant.create(amount)
    await complete(own.service, own.auto_merchant.merchant_id, created, card)
    return UUID(created["orderId"])


async def states(own: Own, order_id: UUID) -> list[str]:
    return [item.state for item in (await agreed(own, order_id)).found.plan]


async def work(own: Own) -> None:
    while await settle_due_orders(own.context) or await send_messages(own.context):
        pass
    await return_due_money(own.context)


async def at_next(own: Own, order_id: UUID) -> datetime | None:
    """Move the clock to the next due time, and do the worker's job. Return that time."""
    at = (await agreed(own, order_id)).found.order.collect_at
    if at is not None:
        set_clock(own, at)
        await work(own)
    return at


async def told(own: Own) -> list[tuple[str, int, str]]:
    """Return the messages that the consumer got after the plan's start."""
    async with own.owner() as owner:
        rows = await owner.fetch(
            "SELECT kind, installment, state FROM messages ORDER BY created_at, installment"
        )
    assert tuple(rows[0])[:2] == ("plan_started", 1)
    return [tuple(row) for row in rows[1:]]


async def test_a_plan_s_reminders_and_charges_happen_on_their_days_until_it_is_completed(own: Own) -> None:
    order_id = await agreed_order(own)
    first_day = (await agreed(own, order_id)).found.plan[0].due_on
    happened = []
    while (at := await at_next(own, order_id)) is not None:
        local = at.astimezone(ZONE)
        happened.append(((local.date() - first_day).days, local.hour))
    one = [(-3, 10), (-1, 10), (0, 0)]
    assert happened == [(start + days, hour) for start in (14, 28, 42) for days, hour in one]
    assert await charged(own) == [(number, 2500, "paid") for number in (1, 2, 3, 4)]
    assert [(kind, n) for kind, n, _ in await told(own)] == [
        (kind, n)
        for n, paid in ((2, "payment_received"), (3, "payment_received"), (4, "plan_paid_off"))
        for kind in ("reminder", "reminder", paid)
    ]
    own.service.clock.ahead += timedelta(hours=9)
    await work(own)
    assert {state for _, _, state in await told(own)} == {"sent"}
    assert plan_state((await agreed(own, order_id)).found.plan) == "completed"
    assert (await verify(own.context.pool)).disagreements == []


async def test_a_card_with_soft_declines_is_charged_six_times_and_another_card_then_pays_at_once(
    own: Own,
) -> None:
    order_id = await agreed_order(own, FAILS_LATER)
    tries = []
    while True:
        at = await at_next(own, order_id)
        assert at is not None
        second = (await agreed(own, order_id)).found.plan[1]
        tries += [at] * (second.failures > len(tries))
        if second.failures and second.charge_at is None:
            break
    waited = [round((later - earlier) / timedelta(hours=1)) for earlier, later in itertools.pairwise(tries)]
    assert waited == [6, 24, 3 * 24, 5 * 24, 7 * 24]
    assert (await told(own))[-1][0] == "card_needed"
    consumer = await consumer_of(own, order_id)
    detail = await find_plan(own.context, consumer, own.auto_merchant.merchant_id, order_id)
    assert detail is not None
    late = sum(item.total for item in overdue(own.context, detail))
    card = read_card(PAYS, "12/39", "123", second.due_on)
    token = await token_of(own.context, card)
    await change_card(own.context, detail, token, late, Asker("2125550187"))
    assert (await states(own, order_id))[:3] == [
        "paid"
    ] * 3  # the third payment became due while the second was retried
    while await at_next(own, order_id):
        pass
    assert await states(own, order_id) == ["paid"] * 4
    assert (await verify(own.context.pool)).disagreements == []


async def consumer_of(own: Own, order_id: UUID) -> UUID:
    async with own.owner() as owner:
        found: UUID = await owner.fetchval("SELECT consumer_id FROM plans WHERE order_id = $1", order_id)
    return found


async def test_a_card_that_is_reported_lost_is_charged_once_and_never_again(own: Own) -> None:
    order_id = await agreed_order(own, LOST_LATER)
    while await at_next(own, order_id):
        pass
    assert [reason for _, _, reason in await charged(own)] == ["paid", "card_lost"]
    assert await states(own, order_id) == ["paid", "overdue", "overdue", "overdue"]
    own.service.clock.ahead += timedelta(hours=9)
    await work(own)
    needed = [(n, state) for kind, n, state in await told(own) if kind == "card_needed"]
    assert needed == [(number, "sent") for number in (2, 3, 3, 3, 4, 4, 4)]
    assert (await verify(own.context.pool)).disagreements == []


@pytest.mark.parametrize("arrives", [True, False], ids=["after it acted", "before it acted"])
async def test_a_lost_answer_is_looked_up_and_no_installment_is_charged_twice(
    own: Own, *, arrives: bool
) -> None:
    order_id = await agreed_order(own)
    rail = FlakyRail(own.context.rails.card, lost=1, arrives=arrives)
    due = (await agreed(own, order_id)).found.plan[1].charge_at
    assert due is not None
    set_clock(own, due)
    await settle_all_due(with_rail(own.context, rail))
    assert (await states(own, order_id))[1] == "scheduled"
    own.service.clock.ahead += timedelta(seconds=16)
    await work(own)
    assert (await states(own, order_id))[1] == "paid"
    assert await charged(own) == [(1, 2500, "paid"), (2, 2500, "paid")]
    assert (await verify(own.context.pool)).disagreements == []


async def test_twenty_workers_at_once_charge_a_card_once(own: Own) -> None:
    order_id = await agreed_order(own)
    due = (await agreed(own, order_id)).found.plan[1].charge_at
    assert due is not None
    set_clock(own, due)
    merchant_id = own.auto_merchant.merchant_id
    await asyncio.gather(*(collect(own.context, merchant_id, order_id) for _ in range(20)))
    await asyncio.gather(*(collect(own.context, merchant_id, order_id) for _ in range(20)))
    assert await charged(own) == [(1, 2500, "paid"), (2, 2500, "paid")]


async def test_if_a_refund_reduces_a_payment_during_its_charge_the_excess_goes_back_to_the_card(
    own: Own,
) -> None:
    order_id = await agreed_order(own)
    due = (await agreed(own, order_id)).found.plan[1].charge_at
    assert due is not None
    set_clock(own, due)
    rail = FlakyRail(own.context.rails.card, lost=1)
    await settle_all_due(with_rail(own.context, rail))
    refunded = await own.auto_merchant.move({"orderId": order_id}, "refund", "70.00")
    assert refunded.status_code == 200, refunded.text
    own.service.clock.ahead += timedelta(seconds=16)
    await work(own)
    second = (await agreed(own, order_id)).found.plan[1]
    assert (second.state, second.amount, second.returned) == ("paid", 500, 2000)
    report = await verify(own.context.pool)
    assert report.disagreements == []
    async with own.owner() as owner:
        back = await owner.fetch("SELECT amount, state FROM card_refunds")
    assert [tuple(row) for row in back] == [(2000, "succeeded")]


async def test_a_consumer_who_pays_early_gets_no_reminder_and_no_second_charge(own: Own) -> None:
    order_id = await agreed_order(own)
    ids = (own.auto_merchant.merchant_id, order_id)
    detail = await find_plan(own.context, await consumer_of(own, order_id), *ids)
    assert detail is not None
    await pay_early(own.context, detail, [2, 3, 4], 7500, Asker("2125550187"))
    assert await states(own, order_id) == ["paid"] * 4
    assert (await agreed(own, order_id)).found.order.collect_at is None
    kinds = sorted(kind for kind, _, _ in await told(own))
    assert kinds == ["payment_received", "payment_received", "plan_paid_off"]
    assert (await verify(own.context.pool)).disagreements == []


async def test_a_rail_that_does_not_answer_for_a_day_charges_once_when_it_answers_again(own: Own) -> None:
    order_id = await agreed_order(own)
    due = (await agreed(own, order_id)).found.plan[1].charge_at
    assert due is not None
    set_clock(own, due)
    rail = FlakyRail(own.context.rails.card, lost=1000, arrives=False)
    silent = with_rail(own.context, rail)
    for _ in range(30):
        await settle_due_orders(silent)
        own.service.clock.ahead += timedelta(hours=1)
    assert len(set(rail.asked)) == 1
    await work(own)
    assert await charged(own) == [(1, 2500, "paid"), (2, 2500, "paid")]


async def test_a_plan_without_any_unpaid_amount_is_not_changed(own: Own) -> None:
    order_id = await agreed_order(own)
    assert (await own.auto_merchant.move({"orderId": order_id}, "refund", "100.00")).status_code == 200
    found: dict[str, Any] = await own.auto_merchant.read({"orderId": str(order_id)})
    assert found["refundedAmount"] == 100
    assert await at_next(own, order_id) is None
    own.service.clock.ahead += timedelta(days=60)
    await work(own)
    assert await charged(own) == [(1, 2500, "paid")]
    assert [kind for kind, _, _ in await told(own)] == ["refunded"]
