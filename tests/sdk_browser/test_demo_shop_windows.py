"""`cuota demo` in a real browser: a shopper pays without leaving the shop, and the shop gets the result."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest
from playwright.async_api import Locator, Page, expect

from support.demo_process import data_folder, demo
from support.sdk_browser.hands import Tabs, buy, popup_of

pytestmark = pytest.mark.browser
PHONE = {"width": 375, "height": 812}


@pytest.fixture(scope="module")
def shop() -> Iterator[str]:
    with data_folder() as data, demo(data) as buyer:
        yield str(httpx.URL(buyer.base_url)).rstrip("/")


async def button_of(page: Page, shop: str, wish: str) -> Locator:
    """Put a kettle into the cart, and wait for the button that opens the window."""
    await page.goto(shop)
    await page.get_by_role("button", name="Gooseneck Kettle").click()
    await page.goto(f"{shop}/cart?{wish}")
    await page.locator("pay-button:not([disabled])").wait_for()
    assert not await page.evaluate("document.documentElement.scrollWidth > innerWidth")
    return page.locator("pay-button")


async def test_a_shopper_who_cancels_in_the_popup_and_tries_again_with_a_double_click_pays_one_order(
    tabs: Tabs, shop: str
) -> None:
    page = await tabs.open(viewport=PHONE)
    button = await button_of(page, shop, "display=popup")
    popup = await popup_of(page, button)
    await popup.get_by_label("Mobile phone number").fill("2125550142")
    await popup.locator("form.ask button.primary").click()
    await popup.get_by_role("button", name="Cancel and return").click()
    await expect(page.get_by_role("status")).to_contain_text("You closed the payment")
    # The shop signs the cart again. Until then the button ignores clicks.
    await page.locator("pay-button:not([disabled])").wait_for()
    async with page.expect_popup() as opening:
        await button.dblclick()
    await buy(await opening.value)
    await expect(page.get_by_role("heading", name="Thank you")).to_be_visible()
    await page.get_by_role("link", name="See the shop's side of it").click()
    await expect(page.locator("main")).to_contain_text("Pay in four, on our page")
    await page.get_by_role("link", name="Orders", exact=True).click()
    await expect(page.locator(".orders .state")).to_have_text(["Approved", "Abandoned"])


async def test_a_virtual_card_from_the_modal_is_charged_and_refunded_like_any_other_card(
    tabs: Tabs, shop: str
) -> None:
    page = await tabs.open()
    button = await button_of(page, shop, "way=card&display=iframe")
    await button.click()
    await buy(page.frame_locator("dialog iframe"))
    await expect(page.get_by_role("heading", name="Thank you")).to_be_visible()
    await page.get_by_role("link", name="See the shop's side of it").click()
    await expect(page.locator("[data-sum=by]")).to_contain_text("Card ending")
    await expect(page.locator("[data-sum=captured]")).to_have_text("$89.95")
    await page.get_by_label("Amount in dollars to refund").fill("10.00")
    await page.get_by_role("button", name="Refund", exact=True).click()
    await expect(page.get_by_role("status")).to_contain_text("$10.00 refunded.")
    await expect(page.locator("[data-sum=refunded]")).to_have_text("$10.00")


async def test_after_escape_the_keyboard_continues_at_the_button_that_opened_the_window(
    tabs: Tabs, shop: str
) -> None:
    page = await tabs.open()
    button = await button_of(page, shop, "display=iframe")
    await button.focus()
    await page.keyboard.press("Enter")
    await page.frame_locator("dialog iframe").get_by_label("Mobile phone number").wait_for()
    await page.locator("dialog").focus()
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("status")).to_contain_text("You closed the payment")
    await page.locator("pay-button:not([disabled])").wait_for()
    await expect(button).to_be_focused()
