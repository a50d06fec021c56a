"""A merchant is suspended while a shopper is in the checkout: nothing is charged, and the page leads back to the shop."""

from __future__ import annotations

import html
import re
import secrets
from collections.abc import Callable

import pytest

from cuota.flows.checkout.submit_checkout import NOT_SELLING
from cuota.flows.desk.record import Actor, Cause
from cuota.flows.merchant.change_settings import set_brand
from cuota.flows.merchant.manage_merchants import revoke_merchant
from cuota.flows.merchant.suspend_merchant import resume_merchant, suspend_merchant
from support.makers import Merchant, Running
from support.pages.returning import again, bought
from support.pages.visitor import STEPS, Visitor, address_of, charges, rows
from support.signed import started

STOPPED = "This payment cannot continue"


async def suspend(merchant: Merchant) -> None:
    await suspend_merchant(merchant.service.context, merchant.name, hold=False)


async def test_a_link_of_a_suspended_merchant_says_so_and_leads_back_to_the_shop(
    merchant: Merchant, visitor: Visitor
) -> None:
    order = await merchant.create()
    await suspend(merchant)
    page = await visitor.open(order["redirectUrl"])
    assert (page.status, page.heading) == (403, STOPPED)
    assert "Nothing was charged." in page.text
    assert "suspended" not in page.text
    assert "/cancel" in page.link(f"Back to {merchant.name}")


async def test_the_page_names_the_shop_as_consumers_know_it(merchant: Merchant, visitor: Visitor) -> None:
    shown = f"Alder {secrets.token_hex(3)}"
    cause = Cause(Actor(None), "new brand")
    await set_brand(merchant.service.context, merchant.merchant_id, shown, "", None, cause)
    order = await merchant.create()
    await suspend(merchant)
    page = await visitor.open(order["redirectUrl"])
    assert page.text.count(shown) >= 2
    assert merchant.name not in page.answer.text


@pytest.mark.parametrize("step", STEPS)
async def test_no_step_goes_on_and_nothing_is_stored_or_charged(
    service: Running, merchant: Merchant, visitor: Visitor, step: str
) -> None:
    order = await merchant.create()
    await visitor.until(step, order)
    await suspend(merchant)
    before = await rows(service, order)
    page = await visitor.send(step)
    assert (page.status, page.heading) == (403, STOPPED)
    assert await rows(service, order) == before
    assert await charges(service, order) == []
    assert (await merchant.read(order))["orderStatus"] == "Created"


async def test_an_open_checkout_of_a_revoked_merchant_can_be_paid_until_the_merchant_is_suspended(
    service: Running, merchant: Merchant, visit: Callable[..., Visitor]
) -> None:
    """So a person who tests stolen cards in open checkouts is stopped only by a suspension (docs/production.md)."""
    first, second = await merchant.create(), await merchant.create()
    early, late = visit(), visit()
    await early.until("pay", first)
    await late.until("pay", second)
    await revoke_merchant(service.context, str(merchant.merchant_id))
    assert (await early.send("pay")).outcome == "approved"
    await suspend_merchant(service.context, str(merchant.merchant_id), hold=False)
    page = await late.send("pay")
    assert (page.status, page.heading) == (403, STOPPED)
    assert await charges(service, second) == []


async def test_a_returning_consumer_is_not_charged_with_one_press(
    service: Running, merchant: Merchant, auto_merchant: Merchant, visitor: Visitor
) -> None:
    await bought(merchant, visitor)
    order, _ = await again(auto_merchant, visitor)
    await suspend(auto_merchant)
    page = await visitor.send("again")
    assert (page.status, page.heading) == (403, STOPPED)
    assert await charges(service, order) == []


async def test_a_shopper_may_still_leave(merchant: Merchant, visitor: Visitor) -> None:
    order = await merchant.create()
    await visitor.until("details", order)
    await suspend(merchant)
    page = await visitor.send("leave")
    assert "/cancel" in (page.left or "")
    assert (await merchant.read(order))["orderStatus"] == "Abandoned"


async def test_a_resumed_merchants_shopper_goes_on_where_the_shopper_was(
    merchant: Merchant, visitor: Visitor
) -> None:
    order = await merchant.create()
    await visitor.until("pay", order)
    await suspend(merchant)
    assert (await visitor.open(address_of(order))).heading == STOPPED
    await resume_merchant(merchant.service.context, merchant.name)
    await visitor.open(address_of(order))
    assert (await visitor.send("pay")).outcome == "approved"


async def test_an_order_that_was_paid_before_shows_its_outcome(merchant: Merchant, visitor: Visitor) -> None:
    order = await merchant.create()
    await visitor.buy(order)
    await suspend(merchant)
    assert (await visitor.open(address_of(order))).outcome == "approved"


async def test_a_popup_tells_the_shops_page_that_the_merchant_closed_it(
    merchant: Merchant, visitor: Visitor
) -> None:
    order = await started(merchant)
    await visitor.open(order["checkoutUrl"])
    await suspend(merchant)
    page = await visitor.send("phone")
    opening = re.search(r"<html[^>]*>", page.answer.text)
    assert opening is not None
    told = dict(re.findall(r'data-pay-(\w+)="([^"]*)"', html.unescape(opening[0])))
    assert (page.status, told["outcome"], told["message"]) == (403, "closed", "closed_by_merchant")


def test_the_words_name_no_reason() -> None:
    """Why a merchant is suspended is between the merchant and the operator."""
    assert "suspend" not in NOT_SELLING
