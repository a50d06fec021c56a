"""The message about a refund that ends a wait or a dispute has the days on which the payments are charged afterward."""

from __future__ import annotations

from datetime import timedelta

from cuota.core.dates import day
from cuota.flows.dispute.answer_dispute import withdraw_dispute
from cuota.flows.dispute.notice_return import notice_return
from support.disputes import disputed
from support.flows.changing import order_of, whole
from support.flows.collecting import agreed
from support.flows.told import NOON, move_to_hour, told
from support.own_service import Own


async def test_a_refund_that_ends_the_wait_for_it_tells_the_day_to_which_the_payment_goes_back(
    own: Own,
) -> None:
    move_to_hour(own, NOON)
    order_id, shop = await order_of(own), own.auto_merchant
    before = (await agreed(own, order_id)).plan[1].due_on
    await notice_return(own.context, shop.merchant_id, order_id, "UPS", "1Z999")
    await shop.move({"orderId": str(order_id)}, "refund", "10.00")
    assert (await agreed(own, order_id)).plan[1].due_on == before
    assert f"Still to pay, by Visa ending 4242: $25.00 on {day(before)};" in (await told(own))[-1].text
    await whole(own)


async def test_a_refund_that_closes_the_dispute_tells_the_days_after_the_pause(own: Own) -> None:
    move_to_hour(own, NOON)
    order_id, shop = await order_of(own), own.auto_merchant
    before = (await agreed(own, order_id)).plan[1].due_on
    await disputed(shop, {"orderId": str(order_id)}, 1000)
    own.service.clock.ahead += timedelta(days=5)
    await shop.move({"orderId": str(order_id)}, "refund", "10.00")
    moved = (await agreed(own, order_id)).plan[1].due_on
    assert moved == before + timedelta(days=5)
    assert f"Still to pay, by Visa ending 4242: $25.00 on {day(moved)};" in (await told(own))[-1].text
    await whole(own)


async def test_a_refund_while_the_dispute_stays_open_promises_no_days(own: Own) -> None:
    move_to_hour(own, NOON)
    order_id, shop = await order_of(own), own.auto_merchant
    before = (await agreed(own, order_id)).plan[1].due_on
    dispute = await disputed(shop, {"orderId": str(order_id)}, 4000)
    own.service.clock.ahead += timedelta(days=2)
    await shop.move({"orderId": str(order_id)}, "refund", "10.00")
    said = (await told(own))[-1].text
    assert "Still to pay: $65.00. Payments are paused while a dispute is open." in said
    assert day(before) not in said
    await withdraw_dispute(own.context, shop.merchant_id, dispute.dispute_id)
    after = (await agreed(own, order_id)).plan[1].due_on
    assert f"Still to pay, by Visa ending 4242: $25.00 on {day(after)};" in (await told(own))[-1].text
    await whole(own)
