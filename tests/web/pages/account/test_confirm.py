"""A later payment that the consumer must confirm at the card's bank (3-D Secure), from the account."""

from __future__ import annotations

import pytest

from support.makers import Merchant, Running
from support.pages.consumer import Consumer, Plan
from support.pages.visitor import CARD_THAT_PAYS, Page, charges

ALWAYS = "4000 0027 6000 3184"
CARD = {"card_number": ALWAYS, "card_expiry": "12/39", "card_cvc": "737"}
TITLE = "Confirm a payment with your bank"


async def confirming(consumer: Consumer, shop: Merchant) -> tuple[Plan, Page, str]:
    """Let a card that must be confirmed pay the second installment. Return the plan's page and the bank's address."""
    plan = await consumer.buy_at(shop, card=CARD_THAT_PAYS)
    await consumer.enter()
    await consumer.open(f"{plan.path}/card")
    await consumer.send("card", **CARD)
    page = await consumer.pay(plan)
    assert TITLE in page.text
    return plan, page, page.link("Go to your bank")


async def answer(consumer: Consumer, bank: str, given: str) -> Page:
    """Press a button of the bank's page."""
    response = await consumer.http.post(bank, data={"answer": given})
    return await consumer.open(response.headers["location"])


async def test_pay_now_leads_to_the_bank_and_then_the_plan_shows_the_payment(
    service: Running, consumer: Consumer, shop: Merchant
) -> None:
    plan, page, bank = await confirming(consumer, shop)
    assert page.answer.headers["refresh"] == f"1; url={bank}"
    page = await answer(consumer, bank, "confirm")
    assert "Your payment went through" in page.text
    assert TITLE not in page.text
    assert [row[:2] for row in await charges(service, plan.order)] == [(2500, True), (2500, True)]


async def test_a_refused_payment_is_shown_as_declined_and_can_be_retried(
    service: Running, consumer: Consumer, shop: Merchant
) -> None:
    plan, _, bank = await confirming(consumer, shop)
    page = await answer(consumer, bank, "refuse")
    assert "Your card was declined by its bank; nothing was charged" in page.text
    assert [row[1] for row in await charges(service, plan.order)] == [True, False]
    again = await consumer.pay(plan)
    assert (await answer(consumer, again.link("Go to your bank"), "confirm")).status == 200
    assert [row[1] for row in await charges(service, plan.order)] == [True, False, True]


async def test_after_coming_back_from_the_bank_without_an_answer_the_plan_s_page_has_the_link(
    consumer: Consumer, shop: Merchant
) -> None:
    plan, _, bank = await confirming(consumer, shop)
    page = await consumer.open(plan.path)
    assert page.answer.headers.get("refresh") is None
    assert page.link("Go to your bank") == bank
    assert "within 20 minutes" in page.text


@pytest.mark.parametrize("given", ["confirm", "refuse"])
async def test_a_new_card_for_an_overdue_payment_leads_to_the_bank_too(
    service: Running, consumer: Consumer, shop: Merchant, given: str
) -> None:
    plan = await consumer.buy_at(shop, card="4000 0000 0000 0341")
    await consumer.enter()
    async with service.clock.moved(days=15):
        await plan.collected()
        await consumer.open(f"{plan.path}/card")
        page = await consumer.send("card", **CARD)
        bank = page.link("Go to your bank")
        assert page.answer.headers["refresh"] == f"1; url={bank}"
        page = await answer(consumer, bank, given)
    assert ("Your payment went through" in page.text) is (given == "confirm")
    assert ("declined by its bank" in page.text) is (given == "refuse")
