"""A consumer whose browser shows text at twice the size (WCAG 1.4.4): no line of a text overlaps the next."""

from __future__ import annotations

import pytest
from playwright.async_api import Page, expect

from support.browser.shopper import fill, to_checkout
from support.browser.tabs import OpenTab, Shop
from support.makers import Merchant, Running, complete
from support.phones import phone_number

pytestmark = pytest.mark.browser
# The elements with text of their own whose lines are less high than their letters, at twice the size.
OVERLAPPING = """() => {
    document.documentElement.style.fontSize = "200%";
    const own = e => [...e.childNodes].some(each => each.nodeType === Node.TEXT_NODE && each.data.trim());
    const low = s => parseFloat(s.lineHeight) < parseFloat(s.fontSize);
    return [...document.querySelectorAll("body *")]
        .filter(e => e.checkVisibility() && own(e) && low(getComputedStyle(e))).map(e => e.outerHTML);
}"""


async def check(page: Page) -> None:
    assert await page.evaluate(OVERLAPPING) == [], page.url


async def test_large_text_does_not_overlap_in_the_checkout(open_tab: OpenTab, shop: Shop) -> None:
    page = await open_tab()
    await to_checkout(page, shop)
    await check(page)
    await page.reload()
    await fill(page, phone=phone_number())
    await fill(page, code="000000")
    await expect(page.get_by_text("This code is wrong")).to_be_visible()
    await check(page)


async def test_large_text_does_not_overlap_in_the_account(
    open_tab: OpenTab, service: Running, auto_merchant: Merchant
) -> None:
    number, order = phone_number(), await auto_merchant.create("100.00")
    await complete(service, auto_merchant.merchant_id, order, phone=number)
    page = await open_tab()
    await page.goto(f"{service.settings.public_url}/account")
    await fill(page, phone=number)
    await fill(page, code="123456")
    await check(page)
    plan = f"{service.settings.public_url}/account/plans/{auto_merchant.merchant_id}/{order['orderId']}"
    for path in ("", "/card", "/pay?all=1", "/dispute"):
        await page.goto(plan + path)
        await check(page)
