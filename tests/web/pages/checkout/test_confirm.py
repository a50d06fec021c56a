"""A card whose bank wants the consumer to confirm the first payment (3-D Secure), with the simulated bank's page."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from uuid import UUID

import pytest

from support.flows.due import settle_all_due
from support.makers import Merchant, Running
from support.pages.visitor import CARD_THAT_PAYS, Page, Visitor, address_of, charges

ALWAYS, ONCE, THEN_DECLINED = "4000 0027 6000 3184", "4000 0025 0000 3155", "4000 0082 6000 3178"
PROCESSING = "4000 0000 0000 3006"


async def to_confirm(visitor: Visitor, merchant: Merchant, card: str = ALWAYS) -> tuple[dict, Page, str]:
    """Press the payment button. Return the order, the next page, and the address of the bank's page."""
    order = await merchant.create()
    page = await visitor.buy(order, card_number=card)
    assert (page.status, page.heading) == (200, "Confirm with your bank")
    return order, page, page.link("Go to your bank")


async def answer(visitor: Visitor, bank: str, given: str = "confirm") -> Page:
    """Press a button of the bank's page."""
    response = await visitor.http.post(bank, data={"answer": given})
    assert response.status_code == 303
    return await visitor.open(response.headers["location"])


@pytest.mark.parametrize("card", [ALWAYS, ONCE])
async def test_a_payment_that_the_consumer_confirms_is_charged_once_and_approves_the_order(
    service: Running, merchant: Merchant, visitor: Visitor, card: str
) -> None:
    order, page, bank = await to_confirm(visitor, merchant, card)
    assert page.answer.headers["refresh"] == f"1; url={bank}"
    assert "within 20 minutes" in page.text
    assert await charges(service, order) == [(2500, False, None)]
    shown = Page(await visitor.http.get(bank))
    assert "$25.00" in shown.text
    assert f"Visa ending {card[-4:]}" in shown.text
    assert shown.heading == "Simulated bank: confirm this payment"
    assert (await answer(visitor, bank)).outcome == "approved"
    assert await charges(service, order) == [(2500, True, None)]
    assert (await merchant.read(order))["orderStatus"] == "Approved"


async def test_a_payment_that_the_consumer_refuses_is_not_charged_and_another_card_can_pay(
    service: Running, merchant: Merchant, visitor: Visitor
) -> None:
    order, _, bank = await to_confirm(visitor, merchant)
    page = await answer(visitor, bank, "refuse")
    assert page.heading == "Review and pay"
    assert "Try another card" in page.text
    assert await charges(service, order) == [(2500, False, "authentication_failed")]
    assert (await visitor.send("pay", card_number=CARD_THAT_PAYS)).outcome == "approved"


async def test_a_payment_that_is_declined_after_the_confirmation_is_shown_as_declined(
    service: Running, merchant: Merchant, visitor: Visitor
) -> None:
    order, _, bank = await to_confirm(visitor, merchant, THEN_DECLINED)
    assert "declined by its bank" in (await answer(visitor, bank)).text
    assert await charges(service, order) == [(2500, False, "card_declined")]


async def test_after_coming_back_from_the_bank_without_an_answer_the_consumer_can_use_another_card(
    service: Running, merchant: Merchant, visitor: Visitor
) -> None:
    order, _, bank = await to_confirm(visitor, merchant)
    page = await visitor.open(address_of(order))
    assert (page.heading, page.answer.headers.get("refresh")) == ("Confirm with your bank", None)
    page = await visitor.send("another-card")
    assert "That payment was canceled, and nothing was charged. Use another card" in page.text
    assert await charges(service, order) == [(2500, False, "authentication_abandoned")]
    assert (
        await visitor.http.post(bank, data={"answer": "confirm"})
    ).status_code == 303  # the confirmation comes too late
    assert (await visitor.send("pay", card_number=CARD_THAT_PAYS)).outcome == "approved"
    assert sorted(await charges(service, order)) == [
        (2500, False, "authentication_abandoned"),
        (2500, True, None),
    ]


async def test_opening_the_page_later_does_not_redirect_to_the_bank(
    service: Running, merchant: Merchant, visitor: Visitor
) -> None:
    order, _, _ = await to_confirm(visitor, merchant)
    async with service.clock.moved(seconds=31):
        page = await visitor.open(f"{address_of(order)}?said=asked")
    assert (page.heading, page.answer.headers.get("refresh")) == ("Confirm with your bank", None)


async def test_an_abandoned_confirmation_is_canceled_after_twenty_minutes(
    service: Running, merchant: Merchant, visitor: Visitor
) -> None:
    order, _, bank = await to_confirm(visitor, merchant)
    async with service.clock.moved(minutes=21):
        await settle_all_due(service.context)
        assert (await visitor.open(address_of(order))).heading == "Review and pay"
        over = Page(await visitor.http.get(bank))
        assert (over.status, over.heading) == (404, "This confirmation has ended")
        assert over.link("Go back to your payment").endswith(address_of(order))
    assert await charges(service, order) == [(2500, False, "authentication_abandoned")]


async def test_a_second_answer_at_the_bank_changes_nothing_and_returns_to_the_checkout(
    service: Running, merchant: Merchant, visitor: Visitor
) -> None:
    order, _, bank = await to_confirm(visitor, merchant)
    await answer(visitor, bank)
    assert (await answer(visitor, bank, "refuse")).outcome == "approved"
    assert await charges(service, order) == [(2500, True, None)]


async def test_tabs_that_see_the_confirmed_charge_at_the_same_time_record_it_once(
    service: Running, merchant: Merchant, visitor: Visitor
) -> None:
    order, page, bank = await to_confirm(visitor, merchant)
    action, held = page.form("another-card")
    await visitor.http.post(bank, data={"answer": "confirm"})
    looks = [visitor.http.get(address_of(order)) for _ in range(8)]
    presses = [visitor.http.post(action, data=held) for _ in range(4)]
    async with service.clock.moved(seconds=16):
        answers = await asyncio.gather(*looks, *presses, settle_all_due(service.context))
    assert {each.status_code for each in answers[:-1]} <= {200, 303}
    assert (await visitor.open(address_of(order))).outcome == "approved"
    sql = "SELECT type FROM events WHERE order_id = $1 AND type = 'order.approved'"
    assert len(await service.context.pool.fetch(sql, UUID(order["orderId"]))) == 1
    assert await charges(service, order) == [(2500, True, None)]


async def test_another_browser_with_the_link_does_not_see_the_charge_and_cannot_cancel_it(
    service: Running, merchant: Merchant, visitor: Visitor, visit: Callable[..., Visitor]
) -> None:
    order, _, bank = await to_confirm(visitor, merchant)
    other = visit()
    page = await other.open(order["redirectUrl"])
    assert page.heading == "Your payment is on its way"
    assert bank not in page.answer.text
    csrf_less = await other.http.post(f"{address_of(order)}/another-card", data={})
    assert csrf_less.status_code == 403
    assert await charges(service, order) == [(2500, False, None)]


async def test_a_card_that_stays_in_progress_waits_on_the_working_page_and_then_pays(
    service: Running, merchant: Merchant, visitor: Visitor
) -> None:
    order = await merchant.create()
    page = await visitor.buy(order, card_number=PROCESSING)
    assert page.heading == "Your payment is on its way"
    assert (await visitor.open(address_of(order))).heading == "Your payment is on its way"
    async with service.clock.moved(seconds=61):
        assert (await visitor.open(address_of(order))).outcome == "approved"
    assert await charges(service, order) == [(2500, True, None)]


@pytest.mark.parametrize("key", ["7d9f5a56-31a4-4c6d-9a55-d7c1f3b0a001", "nonsense", "%00"])
async def test_an_unknown_link_to_the_bank_shows_a_page_that_says_so(visitor: Visitor, key: str) -> None:
    for response in (
        await visitor.http.get(f"/sandbox-processor/confirm/{key}"),
        await visitor.http.post(f"/sandbox-processor/confirm/{key}", data={"answer": "confirm"}),
    ):
        page = Page(response)
        assert (page.status, page.heading) == (404, "There is nothing to confirm here")


async def test_another_site_cannot_press_the_bank_s_button(
    service: Running, merchant: Merchant, visitor: Visitor
) -> None:
    order, _, bank = await to_confirm(visitor, merchant)
    foreign = {"sec-fetch-site": "cross-site"}
    assert (await visitor.http.post(bank, data={"answer": "confirm"}, headers=foreign)).status_code == 403
    assert (await visitor.http.post(bank, data={"answer": "maybe"})).headers["location"] in bank
    assert await charges(service, order) == [(2500, False, None)]
