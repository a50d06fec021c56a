"""A written-off payment on the account page: it says so, and the consumer can still pay it."""

from __future__ import annotations

from uuid import UUID

from cuota.flows.plan.write_off_installments import write_off_order
from support.makers import Merchant, Running
from support.pages.consumer import LOST_LATER, NEW_CARD, Consumer


async def test_a_written_off_payment_is_shown_and_can_still_be_paid_with_another_card(
    consumer: Consumer, shop: Merchant, service: Running
) -> None:
    plan = await consumer.buy_at(shop, card=LOST_LATER)
    await consumer.enter()
    async with service.clock.moved(days=15):
        await plan.collected()
    # The second payment was due on day 14, and is written off on day 134.
    async with service.clock.moved(days=136):
        for _ in range(3):
            await plan.collected()
        done = await write_off_order(service.context, shop.merchant_id, UUID(plan.order["orderId"]))
        assert done is not None
        assert [item.number for item in done.installments] == [2]
        page = await consumer.open(plan.path)
        assert page.text.count("Written off") == 2  # the words are in the picture and in the table
        assert "It is written off: no card is charged for it any more." in page.text
        assert "You still owe it, and can pay it here." in page.text
        page = await consumer.open(page.link("Use another card"))
        assert "The overdue amount, $50.00, is charged to this card right away" in page.text
        page = await consumer.send("card", **NEW_CARD)
        assert "The overdue amount is paid." in page.text
        assert "Pay the overdue $25.00" in page.text
        page = await consumer.pay(plan, "overdue=1")
        assert "Your payment went through" in page.text
        assert "Nothing left to pay" in page.text
        assert "Written off" not in page.text
        assert page.text.count("Receipt of payment") == 4
