"""Paying early and changing the card: each payment is made once, for the amount that the page showed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from cuota.rails.card.protocol import Card, CardAnswer, CardHolder, ChargeRequest, declined
from cuota.rails.card.sandbox import SandboxCardRail
from cuota.rails.unavailable import RailUnavailable
from support.makers import Merchant, Running
from support.pages.beside import beside
from support.pages.consumer import DECLINED, FAILS_LATER, LOST_LATER, NEW_CARD, PAYS, Consumer, Plan
from support.pages.visitor import charges
from support.rails.parts import rail_parts


async def taken(plan: Plan) -> list[Any]:
    """Return the charges at the card network: (cents, whether the card paid)."""
    return [(amount, approved) for amount, approved, _ in await charges(plan.shop.service, plan.order)]


async def test_one_payment_is_paid_early_after_a_page_that_shows_the_payment_the_amount_and_the_card(
    consumer: Consumer, shop: Merchant
) -> None:
    plan = await consumer.buy_at(shop)
    await consumer.enter()
    page = await consumer.open(f"{plan.path}/pay?number=2")
    assert page.heading == "Pay $25.00"
    for words in ("Payment 2, due", "Charged now $25.00", "Visa ending 4242", "Pay $25.00 now"):
        assert words in page.text
    page = await consumer.send("pay")
    assert page.answer.url.path == plan.path
    assert "Your payment went through" in page.text
    assert page.text.count("Receipt of payment") == 2
    assert await taken(plan) == [(2500, True)] * 2


async def test_all_remaining_payments_are_paid_at_once_with_one_charge_for_each(
    consumer: Consumer, shop: Merchant
) -> None:
    plan = await consumer.buy_at(shop, "100.03")
    await consumer.enter()
    page = await consumer.open(f"{plan.path}/pay?all=1")
    assert "Pay $75.02 now" in page.text
    page = await consumer.send("pay")
    assert "Completed" in page.text
    assert "Nothing left to pay" in page.text
    assert await taken(plan) == [(2501, True), (2501, True), (2501, True), (2500, True)]


@pytest.mark.parametrize("which", ["number=2", "all=1"])
async def test_two_clicks_at_once_charge_once(consumer: Consumer, shop: Merchant, which: str) -> None:
    plan = await consumer.buy_at(shop)
    await consumer.enter()
    action, held = (await consumer.open(f"{plan.path}/pay?{which}")).form("pay")
    both = await asyncio.gather(*(consumer.http.post(action, data=held) for _ in range(2)))
    assert [answer.status_code for answer in both] == [303, 303]
    assert (
        len({answer.headers["location"] for answer in both}) == 2
    )  # one request pays, and the other reports the current state
    assert await taken(plan) == [(2500, True)] * (2 if which == "number=2" else 4)


async def test_a_second_click_after_the_first_answer_says_that_the_payment_was_made(
    consumer: Consumer, shop: Merchant
) -> None:
    plan = await consumer.buy_at(shop)
    await consumer.enter()
    action, held = (await consumer.open(f"{plan.path}/pay?number=2")).form("pay")
    await consumer.http.post(action, data=held)
    answer = await consumer.http.post(action, data=held)
    page = await consumer.open(answer.headers["location"])
    assert "You already paid this. Nothing was charged twice." in page.text
    assert await taken(plan) == [(2500, True)] * 2


@pytest.mark.parametrize(
    ("refund", "which", "said"),
    [
        ("10.00", "all=1", "Your plan has changed"),
        ("10.00", "number=4", "Your plan has changed"),
        ("30.00", "number=4", "no longer due"),
    ],
)
async def test_an_amount_that_differs_from_the_page_s_amount_is_not_charged(
    consumer: Consumer, shop: Merchant, refund: str, which: str, said: str
) -> None:
    plan = await consumer.buy_at(shop)
    await consumer.enter()
    await consumer.open(f"{plan.path}/pay?{which}")
    assert (await shop.move(plan.order, "refund", refund)).status_code == 200
    page = await consumer.send("pay")
    assert said in page.text
    assert await taken(plan) == [(2500, True)]
    if said != "no longer due":
        page = await consumer.pay(plan, "all=1")
        assert "Your payment went through" in page.text
        assert sum(amount for amount, _ in await taken(plan)) == 9000


@pytest.mark.parametrize(
    "changed",
    [
        {"numbers": "2,9"}, {"numbers": ""}, {"numbers": "2;3"}, {"expected": "-1"}, {"expected": "2499"}, {"expected": "9" * 99},
        {"expected": "²"}, {"card": "visa-0341"}, {"numbers": "1"}, {"numbers": "2,2"},
    ],
)  # fmt: skip
async def test_a_form_whose_values_differ_from_the_page_charges_nothing(
    consumer: Consumer, shop: Merchant, changed: dict[str, str]
) -> None:
    plan = await consumer.buy_at(shop)
    await consumer.enter()
    action, held = (await consumer.open(f"{plan.path}/pay?number=2")).form("pay")
    answer = await consumer.http.post(action, data={**held, **changed})
    assert answer.status_code == 303
    assert not answer.headers["location"].endswith("said=paid")
    assert await taken(plan) == [(2500, True)]


async def test_the_page_of_a_payment_that_is_not_due_redirects_to_the_plan(
    consumer: Consumer, shop: Merchant
) -> None:
    plan = await consumer.buy_at(shop)
    await consumer.enter()
    for query in ("number=1", "number=9", "number=", "", "all=2"):
        page = await consumer.open(f"{plan.path}/pay?{query}")
        assert (page.answer.url.path, "no longer due" in page.text) == (plan.path, True), query
    await consumer.pay(plan, "all=1")
    for path in ("pay?all=1", "pay?number=2", "card"):
        page = await consumer.open(f"{plan.path}/{path}")
        assert (page.answer.url.path, "Nothing is left to pay" in page.text) == (plan.path, True), path


async def test_a_declined_card_is_reported_and_the_plan_is_not_changed(
    consumer: Consumer, shop: Merchant
) -> None:
    plan = await consumer.buy_at(shop, card=FAILS_LATER)
    await consumer.enter()
    page = await consumer.pay(plan, "all=1")
    assert page.answer.url.path == plan.path
    assert "Your card was declined by its bank; nothing was charged." in page.text
    assert page.text.count("Scheduled") == 3
    assert await taken(plan) == [(2500, True), (2500, False)]


class PaysTwice(SandboxCardRail):
    """A network whose card has money for two payments."""

    asked = 0

    async def charge(self, asked: ChargeRequest) -> CardAnswer:
        self.asked += 1
        return await super().charge(asked) if self.asked < 3 else declined("no_funds")


async def test_payments_made_before_a_decline_are_kept_and_the_page_says_so(
    sign_in: Callable[..., Consumer], service: Running, shop: Merchant
) -> None:
    other = beside(service.context, service.clock, card=PaysTwice(*rail_parts(service.context.pool)))
    consumer = sign_in(at=other)
    plan = await consumer.buy_at(shop)
    await consumer.enter()
    page = await consumer.pay(plan, "all=1")
    assert "Your card paid part of this and was then declined" in page.text
    assert (page.text.count("Scheduled"), page.text.count("Receipt of payment")) == (1, 3)


class Silent(SandboxCardRail):
    """A network that cannot be reached."""

    async def charge(self, asked: ChargeRequest) -> CardAnswer:
        raise RailUnavailable

    async def keep(self, token: str, holder: CardHolder) -> Card:
        raise RailUnavailable


async def test_without_an_answer_of_the_network_the_payment_is_in_progress_and_there_is_no_second_button(
    sign_in: Callable[..., Consumer], service: Running, shop: Merchant
) -> None:
    other = beside(service.context, service.clock, card=Silent(*rail_parts(service.context.pool)))
    consumer = sign_in(at=other)
    plan = await consumer.buy_at(shop)
    await consumer.enter()
    await consumer.open(f"{plan.path}/card")
    page = await consumer.send("card", **NEW_CARD)
    assert (page.status, "The card was not changed; please try again" in page.text) == (400, True)
    page = await consumer.pay(plan)
    assert "nothing is charged twice" in page.text
    assert page.link("Check again") == plan.path
    assert await taken(plan) == [(2500, True)]


async def test_a_new_card_pays_all_later_payments(consumer: Consumer, shop: Merchant) -> None:
    plan = await consumer.buy_at(shop)
    await consumer.enter()
    page = await consumer.open(f"{plan.path}/card")
    assert "Nothing is charged now" in page.text
    page = await consumer.send("card", **NEW_CARD)
    assert "Your new card pays from now on." in page.text
    assert "Mastercard ending 4444" in page.text
    assert await taken(plan) == [(2500, True)]
    page = await consumer.pay(plan)
    receipt = await consumer.open(page.link("Receipt of payment 2"))
    assert "Mastercard ending 4444" in receipt.text


async def test_a_page_that_named_the_old_card_does_not_charge_the_new_one(
    consumer: Consumer, shop: Merchant
) -> None:
    plan = await consumer.buy_at(shop)
    await consumer.enter()
    action, held = (await consumer.open(f"{plan.path}/pay?number=2")).form("pay")
    await consumer.open(f"{plan.path}/card")
    await consumer.send("card", **NEW_CARD)
    answer = await consumer.http.post(action, data=held)
    assert "Your plan has changed" in (await consumer.open(answer.headers["location"])).text
    assert await taken(plan) == [(2500, True)]


async def test_a_new_card_is_charged_for_overdue_payments_at_once_and_the_button_has_the_amount(
    consumer: Consumer, shop: Merchant, service: Running
) -> None:
    plan = await consumer.buy_at(shop, card=LOST_LATER)
    await consumer.enter()
    async with service.clock.moved(days=15):
        await plan.collected()
    async with service.clock.moved(days=29):
        for _ in range(3):
            await plan.collected()
        page = await consumer.open(f"{plan.path}/card")
        assert "The overdue amount, $50.00, is charged to this card right away" in page.text
        assert "Change the card and pay $50.00" in page.text
        page = await consumer.send("card", **NEW_CARD)
        assert "The overdue amount is paid." in page.text
        assert "Mastercard ending 4444" in page.text
    paid = [each for each in await taken(plan) if each[1]]
    assert paid == [(2500, True)] * 3


async def test_a_new_card_that_declines_is_stored_and_the_decline_is_shown(
    consumer: Consumer, shop: Merchant, service: Running
) -> None:
    plan = await consumer.buy_at(shop, card=LOST_LATER)
    await consumer.enter()
    async with service.clock.moved(days=15):
        await plan.collected()
        await consumer.open(f"{plan.path}/card")
        page = await consumer.send("card", card_number=DECLINED, card_expiry="12/39", card_cvc="737")
        assert "its bank declined the overdue payment" in page.text
        assert "Visa ending 0002 is tried again" in page.text
        await consumer.open(f"{plan.path}/card")
        page = await consumer.send("card", card_number=PAYS, card_expiry="12/39", card_cvc="737")
        assert "The overdue amount is paid." in page.text


async def test_a_payment_that_became_overdue_meanwhile_is_not_charged_without_being_shown(
    consumer: Consumer, shop: Merchant, service: Running
) -> None:
    plan = await consumer.buy_at(shop, card=LOST_LATER)
    await consumer.enter()
    await consumer.open(f"{plan.path}/card")
    async with service.clock.moved(days=15):
        await plan.collected()
        page = await consumer.send("card", **NEW_CARD)
        assert "Your plan has changed" in page.text
        assert "Visa ending 9987" in page.text
    assert [each for each in await taken(plan) if each[1]] == [(2500, True)]


async def test_errors_of_an_invalid_card_are_shown_by_field_and_its_number_is_not_shown_again(
    consumer: Consumer, shop: Merchant
) -> None:
    plan = await consumer.buy_at(shop)
    await consumer.enter()
    await consumer.open(f"{plan.path}/card")
    page = await consumer.send("card", card_number="4242 4242 4242 4241", card_expiry="1", card_cvc="")
    assert page.status == 400
    for name in ("card_number", "card_expiry", "card_cvc"):
        assert f'id="{name}-error"' in page.answer.text
    assert "4241" not in page.answer.text


async def test_two_new_cards_at_once_charge_the_overdue_payment_once(
    consumer: Consumer, shop: Merchant, service: Running
) -> None:
    plan = await consumer.buy_at(shop, card=LOST_LATER)
    await consumer.enter()
    async with service.clock.moved(days=15):
        await plan.collected()
        action, held = (await consumer.open(f"{plan.path}/card")).form("card")
        data = {**held, **NEW_CARD}
        both = await asyncio.gather(*(consumer.http.post(action, data=data) for _ in range(2)))
        assert [answer.status_code for answer in both] == [303, 303]
    assert [each for each in await taken(plan) if each[1]] == [(2500, True)] * 2
