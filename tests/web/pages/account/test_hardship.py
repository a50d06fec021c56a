"""A plan that was changed in hardship, on the consumer's account page."""

from __future__ import annotations

import secrets
from datetime import timedelta
from uuid import UUID

from cuota.core.plan.hardship import HardshipRequest, PausePlan, SmallerPayments
from cuota.db.plan import plans
from cuota.flows.desk.record import Actor, Cause
from cuota.flows.merchant.change_settings import set_brand
from cuota.flows.plan.change_plan import agree_on_change, preview_change
from cuota.flows.plan.send_messages import send_messages
from support.makers import Merchant, Running
from support.pages.consumer import Consumer, Plan


async def change(service: Running, plan: Plan, request: HardshipRequest) -> str:
    """Change the plan. Return the hash of what was agreed."""
    ids = plan.shop.merchant_id, UUID(plan.order["orderId"])
    mark = (await preview_change(service.context, *ids, request)).found.before.mark
    made = await agree_on_change(service.context, *ids, request, by="Ana", reason="SECRET REASON", mark=mark)
    return made.text_hash


async def test_a_pause_is_shown_with_its_text_its_hash_and_when_the_consumer_was_told(
    consumer: Consumer, shop: Merchant, service: Running
) -> None:
    plan = await consumer.buy_at(shop)
    agreed_hash = await change(service, plan, PausePlan(14))
    await consumer.enter()
    page = await consumer.open(plan.path)
    assert "What we agreed on with you" in page.text
    assert "Your payments pause until" in page.text
    page = await consumer.open(f"{plan.path}/agreement")
    assert "A message with this change is on its way to you." in page.text
    async with service.clock.moved(hours=14):
        while await send_messages(service.context):
            pass
        page = await consumer.open(f"{plan.path}/agreement")
        assert "We sent you this on" in page.text
    assert agreed_hash in page.text
    assert "You accepted this on" in page.text
    assert "This agreement is" in page.text, "the first agreement stays"
    assert "SECRET REASON" not in page.text


async def test_the_text_of_a_change_names_the_shop_as_the_agreement_does(
    consumer: Consumer, shop: Merchant, service: Running
) -> None:
    shown = f"Alder {secrets.token_hex(3)}"
    await set_brand(service.context, shop.merchant_id, shown, "", None, Cause(Actor(None), "new brand"))
    plan = await consumer.buy_at(shop)
    await change(service, plan, PausePlan(14))
    await consumer.enter()
    page = await consumer.open(f"{plan.path}/agreement")
    assert "A message with this change is on its way to you." in page.text
    assert shown in page.text
    assert shop.name not in page.text


async def test_after_the_pause_the_page_does_not_speak_of_it_any_more(
    consumer: Consumer, shop: Merchant, service: Running
) -> None:
    plan = await consumer.buy_at(shop)
    await change(service, plan, PausePlan(2))
    await consumer.enter()
    assert "Your payments pause until" in (await consumer.open(plan.path)).text
    async with service.clock.moved(days=3):
        assert "Your payments pause until" not in (await consumer.open(plan.path)).text


async def test_every_one_of_seven_payments_can_be_paid_and_has_a_receipt(
    consumer: Consumer, shop: Merchant, service: Running
) -> None:
    plan = await consumer.buy_at(shop)
    found = await plans.read(service.context.pool, shop.merchant_id, UUID(plan.order["orderId"]))
    assert found is not None
    await change(service, plan, SmallerPayments(6, 14, found.plan[1].due_on + timedelta(days=1)))
    await consumer.enter()
    page = await consumer.open(plan.path)
    assert "Payment 7 of 7" in page.text
    page = await consumer.pay(plan, "number=7")
    assert "Your payment went through" in page.text
    page = await consumer.pay(plan, "all=1")
    assert "Nothing left to pay" in page.text
    assert page.text.count("Receipt of payment") == 7
    page = await consumer.open(page.link("Receipt of payment 7"))
    assert "7 of 7" in page.text
