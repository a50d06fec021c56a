"""If a plan gets smaller, the page says who reduced it, why, by how much, and when."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID, uuid4

from cuota.db.plan.card_events import DueEvent
from cuota.flows.dispute.report_chargeback import report_chargeback
from cuota.flows.order.expire_authorizations import expire_authorization
from support.makers import Merchant, Running
from support.pages.consumer import Consumer


async def test_a_refund_is_shown_as_a_refund(consumer: Consumer, shop: Merchant) -> None:
    plan = await consumer.buy_at(shop)
    await consumer.enter()
    assert "What changed" not in (await consumer.open(plan.path)).text
    await shop.move(plan.order, "refund", "20.00")
    page = await consumer.open(plan.path)
    assert (
        f"What changed You returned items, or {shop.name} gave you money back: reduced by $20.00 on "
        in page.text
    )


async def test_a_canceled_part_and_a_part_that_was_not_shipped_are_shown_as_two_causes(
    consumer: Consumer, merchant: Merchant, service: Running
) -> None:
    plan = await consumer.buy_at(merchant)
    await merchant.move(plan.order, "void", "20.00")
    ids = merchant.merchant_id, UUID(plan.order["orderId"])
    async with service.clock.moved(days=13, seconds=5):
        await expire_authorization(service.context, *ids)
        page = await consumer.enter()
        assert f"Nothing to pay: {merchant.name} did not ship in time." in page.text
        page = await consumer.open(plan.path)
    assert f"{merchant.name} canceled part of your order: reduced by $20.00 on " in page.text
    assert f"{merchant.name} did not ship the rest in time: reduced by $80.00 on " in page.text
    assert "refunded" not in page.text


async def test_a_merchant_s_void_is_shown_as_canceled_even_if_its_reference_looks_like_an_expiry(
    consumer: Consumer, merchant: Merchant
) -> None:
    plan = await consumer.buy_at(merchant)
    await merchant.move(plan.order, "void", "100.00", "authorization-expiry-1")
    await consumer.enter()
    assert (
        f"{merchant.name} canceled your order: reduced by $100.00 on "
        in (await consumer.open(plan.path)).text
    )


async def test_a_first_payment_that_was_completely_refunded_is_not_shown_as_zero_dollars_paid(
    consumer: Consumer, shop: Merchant
) -> None:
    plan = await consumer.buy_at(shop)
    await shop.move(plan.order, "refund", "100.00")
    for page in (await consumer.enter(), await consumer.open(plan.path)):
        assert "$25.00 Sent back" in page.text
        assert "$0.00 Paid" not in page.text
        assert "Paid" not in page.text


async def test_a_lost_chargeback_is_not_shown_as_a_refund_of_the_shop(
    consumer: Consumer, merchant: Merchant, service: Running
) -> None:
    plan = await consumer.buy_at(merchant)
    assert (await merchant.move(plan.order, "capture", "10.00")).status_code == 200
    ids = merchant.merchant_id, UUID(plan.order["orderId"])
    charge_id = (
        await service.context.pool.fetch("SELECT charge_id FROM charges WHERE order_id = $1", ids[1])
    )[0][0]
    for status in ("needs_response", "lost"):
        event = DueEvent(
            *ids, "sandbox", str(uuid4()), "dispute.opened", charge_id, None, "fraudulent", 2500, f"CB-{charge_id}", status,
            service.context.now() + timedelta(days=9),
        )  # fmt: skip
        await report_chargeback(service.context, event, closes=status == "lost")
    await consumer.enter()
    page = await consumer.open(plan.path)
    # The captured part and the part that was not captured.
    assert "The bank of your card took a payment back: reduced by $10.00 on " in page.text
    assert "The bank of your card took a payment back: reduced by $15.00 on " in page.text
    assert "gave you money back" not in page.text
    assert "canceled part of your order" not in page.text
