"""After an outage of days, the consumer gets no surprising charge and no message that is no longer true."""

from __future__ import annotations

import itertools
from datetime import date, datetime, timedelta
from uuid import UUID

from cuota.core.dates import day
from cuota.core.order.order import LOOK_UP_AFTER
from cuota.core.plan.charge import NEVER_SENT
from cuota.db.plan.accounts import PlanDetail
from cuota.db.verify.recalculate import verify
from cuota.flows.dispute.answer_dispute import withdraw_dispute
from cuota.flows.plan.manage_plan import find_plan
from cuota.flows.plan.send_messages import send_messages
from cuota.rails.inbox import look
from cuota.web.pages.account.view import card_of_list, next_words, payments_of
from cuota.work.due_orders import settle_due_orders
from support.disputes import disputed
from support.flows.collecting import ZONE, agreed, charged, set_clock
from support.flows.due import settle_all_due
from support.flows.interrupted import FlakyRail, with_rail
from support.makers import complete
from support.own_service import Own

PAYS, FAILS_LATER = "4242 4242 4242 4242", "4000 0000 0000 0341"


async def bought(own: Own, card: str = PAYS) -> UUID:
    created = await own.auto_merchant.create("100.00")
    await complete(own.service, own.auto_merchant.merchant_id, created, card)
    await texts(own)
    return UUID(created["orderId"])


async def texts(own: Own) -> list[str]:
    """Send what is due. Return all text messages, oldest first."""
    while await send_messages(own.context):
        pass
    return [each.text for each in await look(own.context.pool, limit=200) if each.channel == "text"][::-1]


async def day_of(own: Own, order_id: UUID, number: int) -> datetime:
    at = (await agreed(own, order_id)).plan[number - 1].charge_at
    assert at is not None
    return at


async def down_for(own: Own, order_id: UUID, days: int) -> None:
    """Let the service be down from an hour before the second payment is due, until 11:00 of the day so many days after the payment."""
    at = (await day_of(own, order_id, 2)) + timedelta(days=days)
    set_clock(own, at.astimezone(ZONE).replace(hour=11))


async def books_agree(own: Own) -> None:
    """Verify the books at the time of the service's clock."""
    async with own.owner() as owner:
        await owner.execute("UPDATE sandbox_clock SET ahead = $1", own.service.clock.ahead)
    assert (await verify(own.context.pool)).disagreements == []


async def page_of(own: Own, order_id: UUID) -> PlanDetail:
    """Return what the page of the plan shows."""
    async with own.owner() as owner:
        consumer = await owner.fetchval("SELECT consumer_id FROM plans WHERE order_id = $1", order_id)
    detail = await find_plan(own.context, consumer, own.auto_merchant.merchant_id, order_id)
    assert detail is not None
    return detail


async def days_charged(own: Own, order_id: UUID) -> list[date]:
    """Do the work of the rest of the plan. Return the consumer's days of the later charges."""
    found = []
    while (at := (await agreed(own, order_id)).order.collect_at) is not None:
        set_clock(own, max(at, own.context.now()))
        known = len(await charged(own))
        await settle_all_due(own.context)
        found += [own.context.now().astimezone(ZONE).date()] * (len(await charged(own)) - known)
    return found


async def test_a_payment_that_was_missed_by_hours_is_charged_at_once(own: Own) -> None:
    order_id = await bought(own)
    await down_for(own, order_id, 0)
    await settle_all_due(own.context)
    assert [number for number, _, _ in await charged(own)] == [1, 2]


async def test_a_payment_that_was_missed_by_days_is_announced_before_it_is_charged(own: Own) -> None:
    order_id = await bought(own)
    await down_for(own, order_id, 3)
    today, known = own.context.now().astimezone(ZONE).date(), len(await texts(own))
    await settle_all_due(own.context)
    assert [number for number, _, _ in await charged(own)] == [1]
    told = (await texts(own))[known:]
    later = today + timedelta(days=2)
    assert len(told) == 1
    assert f"On {day(later)} we charge $25.00" in told[0]
    assert (await days_charged(own, order_id))[0] == later
    await books_agree(own)


async def test_payments_that_were_missed_in_an_outage_of_forty_days_are_charged_a_week_apart(
    own: Own,
) -> None:
    order_id = await bought(own)
    await down_for(own, order_id, 40)
    await settle_all_due(own.context)
    await books_agree(own)
    days = await days_charged(own, order_id)
    assert [later - earlier for earlier, later in itertools.pairwise(days)] == [timedelta(days=7)] * 2
    assert [number for number, _, _ in await charged(own)] == [1, 2, 3, 4]
    await books_agree(own)


async def test_a_missed_payment_is_not_charged_on_the_day_of_the_next_one(own: Own) -> None:
    order_id = await bought(own)
    await down_for(own, order_id, 12)
    days = await days_charged(own, order_id)
    assert len(days) == len(set(days)) == 3


async def test_after_a_long_outage_the_consumer_gets_one_message_and_no_payment_is_overdue(own: Own) -> None:
    order_id = await bought(own)
    await down_for(own, order_id, 20)
    known = len(await texts(own))
    await settle_all_due(own.context)
    assert len(await texts(own)) == known + 1
    assert [item.state for item in (await agreed(own, order_id)).plan] == ["paid"] + ["scheduled"] * 3


async def test_the_account_page_says_when_a_missed_payment_is_charged(own: Own) -> None:
    order_id = await bought(own)
    await down_for(own, order_id, 3)
    await settle_all_due(own.context)
    found = await agreed(own, order_id)
    detail = await page_of(own, order_id)
    later = own.context.now().astimezone(ZONE).date() + timedelta(days=2)
    assert found.plan[1].due_on < later
    assert f"$25.00 on {day(later)}" in next_words(detail.shown, own.context.now())


async def test_a_charge_that_no_rail_got_for_days_is_announced_before_it_is_made(own: Own) -> None:
    order_id = await bought(own)
    set_clock(own, await day_of(own, order_id, 2))
    broken = with_rail(own.context, FlakyRail(own.context.rails.card, lost=1, arrives=False))
    # The reminder comes first.
    while (await agreed(own, order_id)).order.charging is None:
        await settle_due_orders(broken)
    await down_for(own, order_id, 3)
    known = len(await texts(own))
    await settle_all_due(own.context)
    assert [number for number, _, _ in await charged(own)] == [1]
    rows = await own.context.pool.fetch("SELECT reason FROM charges WHERE state = 'failed'")
    assert [row["reason"] for row in rows] == [NEVER_SENT]
    own.service.clock.ahead += LOOK_UP_AFTER
    await settle_all_due(own.context)
    assert len(await texts(own)) == known + 1
    await days_charged(own, order_id)
    assert [number for number, _, _ in await charged(own)] == [1, 2, 3, 4]
    await books_agree(own)


async def test_a_reminder_is_not_sent_after_the_day_that_it_announces(own: Own) -> None:
    order_id = await bought(own)
    at = (await agreed(own, order_id)).plan[1].remind_at
    assert at is not None
    set_clock(own, at)
    await settle_all_due(own.context)
    # Everything stands still from here. The job for messages comes back first.
    await down_for(own, order_id, 5)
    assert not [text for text in await texts(own) if " we charge " in text]


async def test_a_retry_is_not_announced_after_its_time(own: Own) -> None:
    order_id = await bought(own, FAILS_LATER)
    for _ in range(2):
        at = await day_of(own, order_id, 2)
        set_clock(own, at)
        await settle_all_due(own.context)
    await down_for(own, order_id, 2)
    assert not [text for text in await texts(own) if "We try again on" in text]


async def test_a_message_names_the_days_on_which_missed_payments_are_charged(own: Own) -> None:
    order_id = await bought(own)
    await down_for(own, order_id, 40)
    await settle_all_due(own.context)
    await texts(own)
    later = [await day_of(own, order_id, number) for number in (2, 3, 4)]
    set_clock(own, later[0].astimezone(ZONE).replace(hour=11))
    await settle_all_due(own.context)
    received = next(text for text in reversed(await texts(own)) if "We charged $25.00" in text)
    third, fourth = (day(at.astimezone(ZONE).date()) for at in later[1:])
    assert f"Still to pay, by Visa ending 4242: $25.00 on {third}; $25.00 on {fourth}." in received


async def test_a_refund_names_the_days_on_which_missed_payments_are_charged(own: Own) -> None:
    order_id = await bought(own)
    await down_for(own, order_id, 40)
    await settle_all_due(own.context)
    known = len(await texts(own))
    await own.auto_merchant.move({"orderId": str(order_id)}, "refund", "30.00")
    second, third = [day((await day_of(own, order_id, number)).astimezone(ZONE).date()) for number in (2, 3)]
    assert f"$25.00 on {second}; $20.00 on {third}." in (await texts(own))[known:][0]


async def test_the_account_page_names_the_charge_that_comes_next(own: Own) -> None:
    order_id = await bought(own)
    await down_for(own, order_id, 12)
    await settle_all_due(own.context)
    detail = await page_of(own, order_id)
    days = {number: (await day_of(own, order_id, number)).astimezone(ZONE).date() for number in (2, 3)}
    assert days[3] < days[2]
    assert f"$25.00 on {day(days[3])}" in next_words(detail.shown, own.context.now())
    shown = {row["number"]: row["day"] for row in payments_of(detail)}
    assert (shown[2], shown[3]) == (day(days[2]), day(days[3]))
    pictured = [each["label"] for each in card_of_list(detail.shown, own.context.now())["plan"]["payments"]]
    assert pictured[1:3] == [day(days[2]), day(days[3])]


async def test_a_missed_payment_that_is_found_at_night_is_charged_a_whole_day_after_its_message(
    own: Own,
) -> None:
    order_id = await bought(own)
    at = (await day_of(own, order_id, 2)) + timedelta(days=3)
    set_clock(own, at.astimezone(ZONE).replace(hour=23))
    known = len(await texts(own))
    await settle_all_due(own.context)
    while len(await texts(own)) == known:
        own.service.clock.ahead += timedelta(hours=1)
    between = (await day_of(own, order_id, 2)).astimezone(ZONE).date() - own.context.now().astimezone(
        ZONE
    ).date()
    assert between == timedelta(days=2)
    await books_agree(own)


async def test_missed_payments_are_not_charged_together_after_a_dispute(own: Own) -> None:
    order_id = await bought(own)
    await down_for(own, order_id, 40)
    await settle_all_due(own.context)
    dispute = await disputed(own.auto_merchant, {"orderId": str(order_id)}, 1000)
    own.service.clock.ahead += timedelta(days=1)
    await withdraw_dispute(own.context, own.auto_merchant.merchant_id, dispute.dispute_id)
    today = own.context.now().astimezone(ZONE).date()
    assert await days_charged(own, order_id) == [today + timedelta(days=passed) for passed in (1, 8, 15)]
    await books_agree(own)
