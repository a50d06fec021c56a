"""A consumer whose order is referred to a person: the page that waits, the message with the link, and the second confirmation."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from cuota.core.risk.adverse import sentences
from support import reviews
from support.flows.due import settle_all_due
from support.makers import Merchant, Running
from support.pages.returning import again
from support.pages.staff import Staff
from support.pages.visitor import CARD_DECLINED, Visitor, address_of, charges, rows
from support.phones import phone_number

LOOKING = "We are looking at your order"
[REASON] = sentences(["sandbox_review_requested"])


async def referred(merchant: Merchant, visitor: Visitor, **fields: str) -> dict[str, Any]:
    """Return an order that waits for a person, after its consumer pressed the button."""
    order = await merchant.create()
    page = await visitor.buy(order, surname="Refertest", **fields)
    assert page.heading == LOOKING, page.text
    return order


async def test_the_page_says_that_an_answer_comes_by_message_until_when_and_that_nothing_was_charged(
    service: Running, merchant: Merchant, visitor: Visitor
) -> None:
    order = await referred(merchant, visitor, phone="2125550187")
    page = visitor.page
    assert page.status == 200
    assert re.search(
        r"by text message to •••• ••87, by [0-9]{1,2}:[0-9]{2} [AP]M P[SD]T at the latest", page.text
    )
    assert "Nothing has been charged." in page.text
    assert "If the answer is yes, the message has a link." in page.text
    assert "If the answer is no, you get the reasons in writing" in page.text
    assert await charges(service, order) == []
    record = await merchant.read(order)
    assert record["orderStatus"] == "Created"


async def test_the_page_is_the_same_after_a_reload_and_looks_again_by_itself(
    merchant: Merchant, visitor: Visitor
) -> None:
    order = await referred(merchant, visitor)
    for address in (address_of(order), f"{address_of(order)}?step=pay", order["redirectUrl"]):
        page = await visitor.open(address)
        assert (page.status, page.heading) == (200, LOOKING)
        assert page.answer.headers["refresh"] == f"20; url={address_of(order)}"


async def test_another_browser_with_the_link_sees_that_it_waits_and_nothing_of_the_consumer(
    merchant: Merchant, visit: Callable[..., Visitor]
) -> None:
    order = await referred(merchant, visit(), phone="2125550187")
    page = await visit().open(order["redirectUrl"])
    assert page.heading == LOOKING
    assert "87" not in page.text.partition("Order total")[2].partition("at the latest")[0]
    assert "by text message, by" in page.text


async def test_while_it_waits_no_step_of_the_checkout_changes_anything(
    service: Running, merchant: Merchant, visit: Callable[..., Visitor]
) -> None:
    order, first, second = await merchant.create(), visit(), visit()
    phone = phone_number()
    await second.until("pay", order, phone=phone)
    await first.buy(order, phone=phone, surname="Refertest")
    before = await rows(service, order)
    assert (await second.send("pay")).heading == LOOKING
    csrf = second.page.form("leave")[1]["csrf"]
    for step in ("phone", "code", "details", "resend", "another-card", "again"):
        answer = await second.http.post(
            f"{address_of(order)}/{step}", data={"csrf": csrf, "phone": "2125550143"}
        )
        assert answer.status_code == 303 or LOOKING in answer.text, (step, answer.text)
    assert await rows(service, order) == before


async def test_after_an_approval_the_consumer_gets_a_link_and_confirms_once_in_the_same_browser(
    service: Running, merchant: Merchant, visitor: Visitor
) -> None:
    phone = phone_number()
    order = await referred(merchant, visitor, phone=phone)
    await reviews.approve(service, order)
    [text] = await reviews.texts_to(service, phone)
    assert "Nothing was charged so far" in text
    link = re.search(r"http\S+", text)
    assert link is not None
    assert link[0] == order["redirectUrl"]
    page = await visitor.open(link[0])
    assert page.heading == "Review and pay"
    assert "We reviewed your order. You can complete it until" in page.text
    page = await visitor.send("pay")
    assert page.outcome == "approved"
    assert len(await charges(service, order)) == 1
    assert (await merchant.read(order))["orderStatus"] == "Approved"


async def test_the_link_on_another_device_asks_for_the_number_again(
    service: Running, merchant: Merchant, visit: Callable[..., Visitor]
) -> None:
    phone = phone_number()
    order = await referred(merchant, visit(), phone=phone)
    await reviews.approve(service, order)
    other = visit()
    page = await other.open(order["redirectUrl"])
    assert "Confirm the phone number that you used for the order." in page.text
    assert (await other.buy(order, phone=phone, surname="Refertest")).outcome == "approved"


async def test_the_approval_is_of_no_use_to_another_number_which_cannot_spoil_it_either(
    service: Running, merchant: Merchant, visit: Callable[..., Visitor]
) -> None:
    owner, stranger = visit(), visit()
    order = await referred(merchant, owner, phone=phone_number())
    await reviews.approve(service, order)
    page = await stranger.until("pay", order, phone=phone_number(), surname="Refertest")
    assert "This order was placed with another phone number." in page.text
    page = await stranger.send("pay")
    assert (page.status, page.outcome) == (400, None)
    assert "This order was placed with another phone number." in page.text
    assert await charges(service, order) == []
    await owner.open(address_of(order))
    assert (await owner.send("pay")).outcome == "approved"


async def test_after_an_approval_a_card_may_fail_and_another_may_pay(
    service: Running, merchant: Merchant, visitor: Visitor
) -> None:
    order = await referred(merchant, visitor, phone=phone_number())
    await reviews.approve(service, order)
    await visitor.open(order["redirectUrl"])
    page = await visitor.send("pay", card_number=CARD_DECLINED)
    assert "This card was declined by its bank" in page.text
    assert (await visitor.send("pay")).outcome == "approved"


async def test_after_a_decline_the_page_and_a_letter_say_why_and_a_message_says_that(
    service: Running, merchant: Merchant, visitor: Visitor
) -> None:
    phone = phone_number()
    order = await referred(merchant, visitor, phone=phone)
    await reviews.decline(service, order)
    page = await visitor.open(address_of(order))
    assert page.outcome == "declined"
    assert REASON in page.text
    told = await reviews.texts_to(service, phone)
    assert len(told) == 2
    assert any("We could not approve your order" in text and "Nothing was charged" in text for text in told)
    assert any(REASON in text for text in told)
    assert (await merchant.read(order))["orderStatus"] == "Declined"


async def test_without_an_answer_the_order_is_declined_ten_minutes_before_the_checkout_ends(
    service: Running, merchant: Merchant, visitor: Visitor
) -> None:
    phone = phone_number()
    order = await referred(merchant, visitor, phone=phone)
    async with service.clock.moved(minutes=49):
        await settle_all_due(service.context)
        assert (await merchant.read(order))["orderStatus"] == "Created"
    async with service.clock.moved(minutes=51):
        late = await visitor.open(address_of(order))
        assert "The time for our answer has ended" in late.text
        await settle_all_due(service.context)
        assert (await merchant.read(order))["orderStatus"] == "Declined"
        page = await visitor.open(address_of(order))
        assert page.outcome == "declined"
        assert len(await reviews.texts_to(service, phone)) == 2


async def test_the_cancel_control_abandons_an_order_that_waits(
    service: Running, merchant: Merchant, visitor: Visitor
) -> None:
    order = await referred(merchant, visitor)
    await visitor.send("leave")
    assert (await merchant.read(order))["orderStatus"] == "Abandoned"
    assert (await reviews.stored(service, order))["state"] == "closed"


async def test_an_approval_that_nobody_confirms_lapses_with_the_checkout(
    service: Running, merchant: Merchant, visitor: Visitor
) -> None:
    phone = phone_number()
    order = await referred(merchant, visitor, phone=phone)
    await reviews.approve(service, order)
    async with service.clock.moved(minutes=61):
        await settle_all_due(service.context)
        assert (await merchant.read(order))["orderStatus"] == "Abandoned"
        # The message was not sent in time. It asks for something that is not possible any more, so it is never sent.
        assert await reviews.texts_to(service, phone) == []


@pytest.mark.parametrize("minutes", [46, 59])
async def test_less_than_fifteen_minutes_before_the_end_nothing_is_referred(
    service: Running, merchant: Merchant, visitor: Visitor, minutes: int
) -> None:
    order = await merchant.create()
    async with service.clock.moved(minutes=minutes):
        assert (await visitor.buy(order, surname="Refertest")).outcome == "declined"
    assert await service.context.pool.fetch("SELECT FROM reviews WHERE order_id = $1", order["orderId"]) == []


async def test_one_press_in_a_browser_that_bought_before_may_be_referred_too(
    service: Running, merchant: Merchant, visitor: Visitor
) -> None:
    phone = phone_number()
    first = await referred(merchant, visitor, phone=phone)
    await reviews.approve(service, first)
    await visitor.open(first["redirectUrl"])
    assert (await visitor.send("pay")).outcome == "approved"
    second, page = await again(merchant, visitor)
    assert page.heading == "Welcome back"
    assert (await visitor.send("again")).heading == LOOKING
    await reviews.approve(service, second)
    page = await visitor.open(address_of(second))
    assert page.heading == "Review and pay"
    assert (await visitor.send("pay")).outcome == "approved"


async def test_the_merchants_staff_sees_that_the_order_is_under_review_and_no_more(
    service: Running, merchant: Merchant, visitor: Visitor, visit: Callable[..., Visitor]
) -> None:
    order = await referred(merchant, visitor)
    staff = Staff(visit().http, merchant)
    await staff.enter()
    page = await staff.open(f"/desk/orders/{order['orderId']}")
    assert "Under review" in page.text
    assert "score" not in page.text.lower()
    await reviews.decline(service, order, reason="looks like fraud")
    page = await staff.open(f"/desk/orders/{order['orderId']}")
    assert "Declined" in page.text
    assert "looks like fraud" not in page.answer.text
