"""A reload, or the browser's Back button, opens an address that names a text. The page shows the text only while it is true."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

import pytest

from cuota.db.plan.charges import pending as pending_charge
from cuota.flows.plan.collect_installments import finish_collection
from support.disputes import disputed
from support.makers import Merchant, Running
from support.pages.consumer import FAILS_LATER, NEW_CARD, Consumer, Plan
from support.pages.visitor import Page

SLOW = "4000 0000 0000 3006"


async def finished(service: Running, plan: Plan) -> None:
    """Record the bank's answer, as a worker process does while nobody looks at the page."""
    ids = plan.shop.merchant_id, UUID(plan.order["orderId"])
    pending = await pending_charge(service.context.pool, *ids)
    assert pending is not None
    assert await finish_collection(service.context, *ids, pending)


async def at_notice(consumer: Consumer, page: Page) -> str:
    """Return the address that the browser shows now, which it opens again at a reload."""
    assert "said=" in str(page.answer.url)
    return str(page.answer.url)


async def new_card(consumer: Consumer, plan: Plan, **changed: str) -> Page:
    """Give another card for a plan, and return the next page."""
    await consumer.open(f"{plan.path}/card")
    return await consumer.send("card", **{**NEW_CARD, **changed})


async def test_after_the_bank_s_answer_a_reload_does_not_say_that_the_new_card_is_being_charged(
    consumer: Consumer, shop: Merchant, service: Running
) -> None:
    plan = await consumer.buy_at(shop, card=FAILS_LATER)
    async with service.clock.moved(days=15):
        await plan.collected()
        await consumer.enter()
        page = await new_card(consumer, plan, card_number=SLOW)
        assert "We are charging the overdue amount to it now." in page.text
        address = await at_notice(consumer, page)
    async with service.clock.moved(days=15, minutes=3):
        await finished(service, plan)
        page = await consumer.open(address)
    assert "Your new card pays from now on." in page.text
    assert "We are charging" not in page.text


async def test_after_the_bank_s_answer_a_reload_does_not_say_that_a_payment_is_in_progress(
    consumer: Consumer, shop: Merchant, service: Running
) -> None:
    plan = await consumer.buy_at(shop)
    await consumer.enter()
    await new_card(consumer, plan, card_number=SLOW)
    page = await consumer.pay(plan)
    assert "A payment for this plan is in progress" in page.text
    address = await at_notice(consumer, page)
    async with service.clock.moved(minutes=3):
        await finished(service, plan)
        page = await consumer.open(address)
    assert "Receipt of payment 2" in page.text
    assert "is in progress" not in page.text


async def test_after_everything_is_paid_back_does_not_say_that_the_card_was_declined(
    consumer: Consumer, shop: Merchant
) -> None:
    plan = await consumer.buy_at(shop, card=FAILS_LATER)
    await consumer.enter()
    address = await at_notice(consumer, await consumer.pay(plan))
    await new_card(consumer, plan)
    assert "Nothing left to pay" in (await consumer.pay(plan, "all=1")).text
    page = await consumer.open(address)
    assert "declined" not in page.text


async def test_after_the_overdue_payment_is_paid_back_does_not_say_that_the_new_card_was_declined(
    consumer: Consumer, shop: Merchant, service: Running
) -> None:
    plan = await consumer.buy_at(shop, card=FAILS_LATER)
    async with service.clock.moved(days=15):
        await plan.collected()
        await consumer.enter()
        page = await new_card(consumer, plan, card_number="4000 0000 0000 9995")
        assert "its bank declined the overdue payment" in page.text
        address = await at_notice(consumer, page)
        await new_card(consumer, plan)
        page = await consumer.open(address)
    assert "declined the overdue payment" not in page.text


async def test_after_the_dispute_the_plan_does_not_say_that_payments_are_paused(
    consumer: Consumer, shop: Merchant
) -> None:
    plan = await consumer.buy_at(shop)
    await consumer.enter()
    await consumer.open(f"{plan.path}/pay?number=2")
    dispute = await disputed(shop, plan.order, 4000)
    page = await consumer.send("pay")
    assert "Payments are paused" in page.text
    address = await at_notice(consumer, page)
    await consumer.open(f"{plan.path}/disputes/{dispute.dispute_id}")
    await consumer.send("withdraw")
    page = await consumer.open(address)
    assert "paused" not in page.text


@pytest.mark.parametrize("said", ["opened", "open", "appealed"])
async def test_after_a_dispute_is_withdrawn_its_page_promises_nothing_that_has_ended(
    consumer: Consumer, shop: Merchant, said: str
) -> None:
    plan = await consumer.buy_at(shop)
    dispute = await disputed(shop, plan.order, 4000)
    await consumer.enter()
    path = f"{plan.path}/disputes/{dispute.dispute_id}"
    await consumer.open(path)
    page = await consumer.send("withdraw")
    assert "You withdrew the dispute. Your payments continue." in page.text
    plain = await consumer.open(path)
    assert (await consumer.open(f"{path}?said={said}")).answer.text == plain.answer.text


async def test_a_link_does_not_say_that_an_open_dispute_was_withdrawn(
    consumer: Consumer, shop: Merchant
) -> None:
    plan = await consumer.buy_at(shop)
    dispute = await disputed(shop, plan.order, 4000)
    await consumer.enter()
    page = await consumer.open(f"{plan.path}/disputes/{dispute.dispute_id}?said=withdrawn")
    assert "You withdrew" not in page.text


async def test_if_nothing_is_left_to_pay_a_withdrawn_dispute_does_not_say_that_payments_continue(
    sign_in: Callable[..., Consumer], shop: Merchant
) -> None:
    consumer = sign_in()
    plan = await consumer.buy_at(shop)
    await consumer.enter()
    await consumer.pay(plan, "all=1")
    dispute = await disputed(shop, plan.order, 4000)
    page = await consumer.open(f"{plan.path}/disputes/{dispute.dispute_id}")
    assert "remaining payments" not in page.text
    page = await consumer.send("withdraw")
    assert "You withdrew" in page.text
    assert "payments continue" not in page.text
    assert "payments continue" not in (await consumer.open(plan.path)).text


async def test_back_after_a_payment_says_that_it_was_made_and_not_that_it_is_no_longer_due(
    consumer: Consumer, shop: Merchant
) -> None:
    plan = await consumer.buy_at(shop)
    await consumer.enter()
    await consumer.pay(plan, "number=2")
    page = await consumer.open(f"{plan.path}/pay?number=2")
    assert "You already paid this. Nothing was charged twice." in page.text
    page = await consumer.open(f"{plan.path}/pay?number=9")
    assert "no longer due" in page.text
