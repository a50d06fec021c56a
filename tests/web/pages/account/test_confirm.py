"""A later payment that the consumer must confirm at the card's bank (3-D Secure), from the account."""

from __future__ import annotations

from uuid import UUID

import pytest

from cuota.core.plan.asking import Subject
from cuota.core.risk.signal import SignalKind
from cuota.db.plan.charges import pending as pending_charge
from cuota.flows.plan.collect_installments import finish_collection
from support.disputes import disputed
from support.makers import Merchant, Running
from support.pages.consumer import Consumer, Plan
from support.pages.visitor import CARD_THAT_PAYS, Page, charges

ALWAYS = "4000 0027 6000 3184"
CARD = {"card_number": ALWAYS, "card_expiry": "12/39", "card_cvc": "737"}
TITLE = "Confirm a payment with your bank"


async def confirming(consumer: Consumer, shop: Merchant) -> tuple[Plan, Page, str]:
    """Let a card that must be confirmed pay the second installment. Return the plan's page and the bank's address."""
    plan = await with_confirmation(consumer, shop)
    page = await consumer.pay(plan)
    assert TITLE in page.text
    return plan, page, page.link("Go to your bank")


async def with_confirmation(consumer: Consumer, shop: Merchant) -> Plan:
    """Buy, and change to a card of which each payment must be confirmed."""
    plan = await consumer.buy_at(shop, card=CARD_THAT_PAYS)
    await consumer.enter()
    await consumer.open(f"{plan.path}/card")
    await consumer.send("card", **CARD)
    return plan


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


@pytest.mark.parametrize("refunded", ["60.00", "100.00"])
async def test_a_payment_that_a_refund_made_smaller_is_canceled_before_the_consumer_confirms_it(
    service: Running, consumer: Consumer, shop: Merchant, refunded: str
) -> None:
    plan, _, bank = await confirming(consumer, shop)
    assert (await shop.move(plan.order, "refund", refunded)).status_code == 200
    page = await consumer.open(plan.path)
    assert TITLE not in page.text
    assert "Your plan has changed" in page.text
    await answer(consumer, bank, "confirm")
    assert [row[1] for row in await charges(service, plan.order)] == [True, False]


async def test_a_refund_that_leaves_the_payment_as_it_is_does_not_cancel_it(
    service: Running, consumer: Consumer, shop: Merchant
) -> None:
    plan, _, bank = await confirming(consumer, shop)
    assert (await shop.move(plan.order, "refund", "50.00")).status_code == 200
    assert TITLE in (await consumer.open(plan.path)).text
    assert "Your payment went through" in (await answer(consumer, bank, "confirm")).text
    assert [row[:2] for row in await charges(service, plan.order)] == [(2500, True), (2500, True)]


async def test_a_payment_is_canceled_when_its_order_is_disputed_before_the_consumer_confirms_it(
    service: Running, consumer: Consumer, shop: Merchant
) -> None:
    plan, _, bank = await confirming(consumer, shop)
    await disputed(shop, plan.order, 4000)
    page = await consumer.open(plan.path)
    assert TITLE not in page.text
    assert "Payments are paused while a dispute about this order is open. Nothing was charged." in page.text
    await answer(consumer, bank, "confirm")
    assert [row[1] for row in await charges(service, plan.order)] == [True, False]


async def test_the_worker_cancels_it_while_the_consumer_is_at_the_bank(
    service: Running, consumer: Consumer, shop: Merchant
) -> None:
    plan, _, bank = await confirming(consumer, shop)
    assert (await shop.move(plan.order, "refund", "60.00")).status_code == 200
    ids = shop.merchant_id, UUID(plan.order["orderId"])
    pending = await pending_charge(service.context.pool, *ids)
    assert pending is not None
    assert await finish_collection(service.context, *ids, pending)
    await answer(consumer, bank, "confirm")
    assert [row[1] for row in await charges(service, plan.order)] == [True, False]


async def test_after_each_confirmation_the_page_offers_the_rest_of_what_the_consumer_chose(
    service: Running, consumer: Consumer, shop: Merchant
) -> None:
    plan = await with_confirmation(consumer, shop)
    page = await consumer.pay(plan, "all=1")
    for left in (2, 1):
        page = await answer(consumer, page.link("Go to your bank"), "confirm")
        assert "Your payment went through. Your bank confirms each payment separately" in page.text
        assert f"Pay ${left * 25}.00 now" in page.text
        page = await consumer.send("pay")
    page = await answer(consumer, page.link("Go to your bank"), "confirm")
    assert "Your payment went through" in page.text
    assert "Nothing left to pay" in page.text
    assert [row[:2] for row in await charges(service, plan.order)] == [(2500, True)] * 4


async def test_a_payment_refused_at_the_bank_ends_the_payment_of_the_rest(
    service: Running, consumer: Consumer, shop: Merchant
) -> None:
    plan = await with_confirmation(consumer, shop)
    page = await consumer.pay(plan, "all=1")
    page = await answer(consumer, page.link("Go to your bank"), "refuse")
    assert "Your card was declined by its bank; nothing was charged" in page.text
    assert [row[1] for row in await charges(service, plan.order)] == [True, False]


async def test_if_the_worker_recorded_the_confirmation_first_the_page_offers_the_rest_too(
    service: Running, consumer: Consumer, shop: Merchant
) -> None:
    plan = await with_confirmation(consumer, shop)
    page = await consumer.pay(plan, "all=1")
    response = await consumer.http.post(page.link("Go to your bank"), data={"answer": "confirm"})
    pending = await pending_charge(service.context.pool, shop.merchant_id, UUID(plan.order["orderId"]))
    assert pending is not None
    assert await finish_collection(service.context, shop.merchant_id, UUID(plan.order["orderId"]), pending)
    page = await consumer.open(response.headers["location"])
    assert "Pay $50.00 now" in page.text


async def test_a_rest_that_a_refund_has_canceled_meanwhile_is_not_offered(
    service: Running, consumer: Consumer, shop: Merchant
) -> None:
    plan = await with_confirmation(consumer, shop)
    page = await consumer.pay(plan, "all=1")
    assert (await shop.move(plan.order, "refund", "50.00")).status_code == 200
    page = await answer(consumer, page.link("Go to your bank"), "confirm")
    assert "Nothing left to pay" in page.text
    assert [row[:2] for row in await charges(service, plan.order)] == [(2500, True), (2500, True)]


@pytest.mark.parametrize(
    "query",
    [
        "paying=1&then=9",
        "paying=2&then=3",
        "paying=1",
        "paying=1,2&then=3",
        "paying=x&then=3",
        "paying=1&then=3,3",
    ],
)
async def test_a_query_that_names_no_rest_of_a_payment_shows_the_plan(
    consumer: Consumer, shop: Merchant, query: str
) -> None:
    plan = await consumer.buy_at(shop, card=CARD_THAT_PAYS)
    await consumer.enter()
    page = await consumer.open(f"{plan.path}?{query}")
    assert "Next payment" in page.text


async def test_beyond_the_rate_limit_a_card_that_has_just_paid_can_pay_until_it_is_declined(
    service: Running, consumer: Consumer, shop: Merchant
) -> None:
    plan = await with_confirmation(consumer, shop)
    page = await consumer.pay(plan, "all=1")
    for given in ("confirm", "confirm", "refuse"):
        page = await answer(consumer, page.link("Go to your bank"), given)
        if given == "confirm":
            page = await consumer.send("pay")
    assert "Your card was declined by its bank" in page.text
    page = await consumer.pay(plan, "all=1")
    assert page.status == 429
    assert [row[1] for row in await charges(service, plan.order)] == [True, True, True, False]


async def failed_attempts(service: Running, consumer: Consumer) -> int:
    """Return how many attempts of this phone number risk counts as failures."""
    row = await service.context.pool.fetchrow(
        "SELECT cardinality(asked) - cardinality(paid) AS failed FROM consumer_asks WHERE subject = $1 AND value_hash = $2",
        Subject.PHONE.value,
        service.context.vault.hash(f"signal-{SignalKind.PHONE}", consumer.phone),
    )
    return int(row["failed"])


@pytest.mark.parametrize(("given", "more"), [("confirm", 0), ("refuse", 1)])
async def test_a_payment_counts_as_a_failed_attempt_only_if_it_is_refused_at_the_bank(
    service: Running, consumer: Consumer, shop: Merchant, given: str, more: int
) -> None:
    plan = await with_confirmation(consumer, shop)
    before = await failed_attempts(service, consumer)
    page = await consumer.pay(plan)
    await answer(consumer, page.link("Go to your bank"), given)
    assert await failed_attempts(service, consumer) == before + more


@pytest.mark.parametrize(("given", "more"), [("confirm", 0), ("refuse", 1)])
async def test_beyond_the_rate_limit_too_a_payment_counts_as_a_failed_attempt_only_if_it_is_refused(
    service: Running, consumer: Consumer, shop: Merchant, given: str, more: int
) -> None:
    plan = await with_confirmation(consumer, shop)
    before = await failed_attempts(service, consumer)
    page = await consumer.pay(plan, "all=1")
    for each in ("confirm", "confirm"):
        await answer(consumer, page.link("Go to your bank"), each)
        page = await consumer.send("pay")
    await answer(consumer, page.link("Go to your bank"), given)
    assert [row[1] for row in await charges(service, plan.order)] == [True, True, True, given == "confirm"]
    assert await failed_attempts(service, consumer) == before + more


@pytest.mark.parametrize("link", ["/pay?numbers=2&said=rest", "?said=paid"])
async def test_a_link_says_that_a_payment_went_through_only_for_some_minutes_after_a_payment(
    service: Running, consumer: Consumer, shop: Merchant, link: str
) -> None:
    plan = await consumer.buy_at(shop, card=CARD_THAT_PAYS)
    await consumer.enter()
    assert "went through" not in (await consumer.open(f"{plan.path}{link}")).text
    await consumer.open(f"{plan.path}/pay?number=3")
    await consumer.send("pay")
    assert "went through" in (await consumer.open(f"{plan.path}{link}")).text
    async with service.clock.moved(minutes=16):
        assert "went through" not in (await consumer.open(f"{plan.path}{link}")).text


async def test_a_link_says_that_a_payment_was_made_before_only_if_one_was_made(
    service: Running, consumer: Consumer, shop: Merchant
) -> None:
    plan = await consumer.buy_at(shop, card=CARD_THAT_PAYS)
    await consumer.enter()
    assert "You already paid" not in (await consumer.open(f"{plan.path}?said=paid-before")).text
    await consumer.open(f"{plan.path}/pay?number=2")
    again = consumer.page
    await consumer.send("pay")
    async with service.clock.moved(minutes=16):
        consumer.page = again
        assert "You already paid this. Nothing was charged twice." in (await consumer.send("pay")).text
