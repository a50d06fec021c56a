"""While a dispute is open, nothing is charged, also not by an old form; a new card is kept; and the page says so."""

from __future__ import annotations

from uuid import UUID

import pytest

from cuota.core.plan.collection import PlanPaused
from cuota.db.plan import plans
from cuota.flows.plan.collect_installments import pay_now
from cuota.flows.plan.manage_plan import PAUSED
from support.disputes import disputed
from support.makers import Merchant, Running
from support.pages.consumer import FAILS_LATER, NEW_CARD, Consumer


async def test_a_new_card_during_a_dispute_is_not_said_to_be_declined(
    consumer: Consumer, shop: Merchant, service: Running
) -> None:
    plan = await consumer.buy_at(shop, card=FAILS_LATER)
    async with service.clock.moved(days=14, hours=20):
        await plan.collected()
        await disputed(shop, plan.order, 4000)
        await consumer.enter()
        page = await consumer.open(f"{plan.path}/card")
        assert "and pay" not in page.text
        page = await consumer.send("card", **NEW_CARD)
        assert "declined" not in page.text
        agreed = await plans.read(service.context.pool, shop.merchant_id, UUID(plan.order["orderId"]))
    assert agreed is not None
    assert agreed.card.last4 == "4444"
    assert [item.charge_at for item in agreed.plan[1:]] == [None] * 3


async def test_a_form_to_pay_that_was_opened_before_the_dispute_charges_nothing_and_says_why(
    consumer: Consumer, shop: Merchant, service: Running
) -> None:
    plan = await consumer.buy_at(shop)
    await consumer.enter()
    await consumer.open(f"{plan.path}/pay?number=2")
    await disputed(shop, plan.order, 4000)
    page = await consumer.send("pay")
    assert PAUSED in page.text
    agreed = await plans.read(service.context.pool, shop.merchant_id, UUID(plan.order["orderId"]))
    assert agreed is not None
    assert [item.paid for item in agreed.plan] == [True, False, False, False]
    page = await consumer.open(f"{plan.path}/pay?number=2")
    assert PAUSED in page.text
    assert "Pay $25.00" not in page.text


async def test_a_dispute_that_opens_while_the_consumer_pays_is_noticed_before_the_charge(
    consumer: Consumer, shop: Merchant, service: Running
) -> None:
    plan = await consumer.buy_at(shop)
    await disputed(shop, plan.order, 4000)
    ids = shop.merchant_id, UUID(plan.order["orderId"])
    with pytest.raises(PlanPaused):
        await pay_now(service.context, *ids, 2, 2500, "https://shop.example/")
