"""A returning shopper in a real browser: the second purchase takes one click, on a page that shows the terms first."""

from __future__ import annotations

from urllib.parse import urlsplit

from playwright.async_api import expect

from support.browser.shopper import card, paid, press, press_pay, to_card, to_checkout
from support.browser.tabs import OpenTab, Shop
from support.makers import Running


async def test_the_second_purchase_in_the_same_browser_takes_one_click_and_works_without_a_mouse(
    open_tab: OpenTab, shop: Shop, service: Running
) -> None:
    page = await open_tab()
    await to_checkout(page, shop)
    await to_card(page)
    await card(page)
    await press_pay(page)
    await page.wait_for_url(f"{shop.url}/confirm?*")
    await page.goto(shop.url)
    await press(page, page.get_by_role("button", name="Gooseneck Kettle"))
    await press(page, page.get_by_role("button", name="Continue to pay in four"))
    await expect(page.get_by_role("heading", name="Welcome back")).to_be_visible()
    await expect(page.get_by_role("region", name="Payment agreement, full text")).to_contain_text("lender")
    order_id = urlsplit(page.url).path.rpartition("/")[2]
    await page.get_by_role("button", name="today with Visa •••• 4242").focus()
    async with page.expect_navigation():
        await page.keyboard.press("Enter")
    assert (await shop.merchant.read({"orderId": order_id}))["orderStatus"] == "Approved"
    assert len(await paid(service, order_id)) == 1


async def test_after_not_you_the_checkout_asks_for_a_number_again(open_tab: OpenTab, shop: Shop) -> None:
    page = await open_tab()
    await to_checkout(page, shop)
    await to_card(page)
    await card(page)
    await press_pay(page)
    await page.wait_for_url(f"{shop.url}/confirm?*")
    for _ in range(2):
        order = await shop.merchant.create()
        await page.goto(order["redirectUrl"])
        away = page.get_by_role("button", name="Not you?")
        if await away.count():
            await press(page, away)
        await expect(page.get_by_label("Mobile phone number")).to_be_visible()
