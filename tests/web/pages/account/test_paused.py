"""While a dispute is open, a new card is kept and charged for nothing, and the page says so."""

from __future__ import annotations

from uuid import UUID

from cuota.db.plan import plans
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
