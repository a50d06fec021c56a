"""The result page of a checkout that is opened again later: it says what is true then."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest

from cuota.db.plan.accounts import PlanDetail
from cuota.flows.plan.limit_asks import Asker
from cuota.flows.plan.manage_plan import find_plan, pay_early
from support.disputes import disputed
from support.makers import Merchant, Running
from support.pages.visitor import Visitor, address_of
from support.phones import phone_number


async def bought(merchant: Merchant, visitor: Visitor, phone: str) -> dict[str, str]:
    """Pay in four, and check the page right after that."""
    order = await merchant.create("100.00")
    page = await visitor.buy(order, phone=phone)
    assert "You paid $25.00 today. Your next payment is $25.00 on" in page.text
    return order


async def detail_of(service: Running, merchant: Merchant, order: dict[str, str], phone: str) -> PlanDetail:
    """Return the plan as the consumer's account page reads it."""
    ids = service.context.vault.consumer_id(phone), merchant.merchant_id, UUID(order["orderId"])
    detail = await find_plan(service.context, *ids)
    assert detail is not None
    return detail


async def test_a_payment_that_was_paid_early_is_not_named_as_the_next_one(
    service: Running, auto_merchant: Merchant, visitor: Visitor
) -> None:
    phone = phone_number()
    order = await bought(auto_merchant, visitor, phone)
    detail = await detail_of(service, auto_merchant, order, phone)
    await pay_early(service.context, detail, [2], 2500, Asker(phone))
    day = f"{detail.shown.plan[2].due_on:%b} {detail.shown.plan[2].due_on.day}."
    page = await visitor.open(address_of(order))
    assert f"Your next payment is $25.00 on {detail.shown.plan[2].due_on:%a}, {day}" in page.text


@pytest.mark.parametrize("what", ["paid", "paused"])
async def test_if_no_payment_comes_next_the_page_names_none(
    service: Running, auto_merchant: Merchant, visitor: Visitor, what: str
) -> None:
    phone = phone_number()
    order = await bought(auto_merchant, visitor, phone)
    detail = await detail_of(service, auto_merchant, order, phone)
    if what == "paid":
        await pay_early(service.context, detail, [2, 3, 4], 7500, Asker(phone))
    else:
        await disputed(auto_merchant, order, 4000)
    assert "Your next payment" not in (await visitor.open(address_of(order))).text


async def test_on_the_next_day_the_page_does_not_say_that_a_payment_was_made_today(
    service: Running, auto_merchant: Merchant, visitor: Visitor
) -> None:
    order = await bought(auto_merchant, visitor, phone_number())
    async with service.clock.moved(hours=23, minutes=50):
        page = await visitor.open(address_of(order))
    assert page.outcome == "approved"
    assert "today" not in page.text.lower()
    assert "You paid $25.00 on " in page.text


async def test_late_in_the_evening_the_page_says_today_in_each_time_zone(
    service: Running, auto_merchant: Merchant, visit: Callable[..., Visitor]
) -> None:
    now = datetime.now(UTC)
    evening = now.astimezone(ZoneInfo("America/Los_Angeles")).replace(hour=23, minute=0)
    hours = ((evening - now) / timedelta(hours=1)) % 24
    visitor = visit()
    async with service.clock.moved(hours=hours):
        for _ in range(2):  # the second time with one press, in a remembered browser
            order = await auto_merchant.create("100.00")
            await visitor.open(order["redirectUrl"])
            if visitor.page.has_form("again"):
                page = await visitor.send("again")
            else:
                page = await visitor.buy(order, phone=phone_number())
            assert "You paid $25.00 today." in page.text
            assert "Today $25.00" in page.text
