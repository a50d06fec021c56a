"""The browser's Back button leads from the checkout back to the shop's page, which the browser kept with all its variables."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import pytest
from playwright.async_api import Page

from support.browser.chromium import opened_chromium
from support.makers import Merchant, Running
from support.sdk_browser.hands import Tabs, all_heard, buy, heard, the_order
from support.sdk_browser.merchant_site import Site

pytestmark = pytest.mark.browser


@pytest.fixture
async def kept(site: Site, merchant: Merchant) -> AsyncIterator[Page]:
    """A tab on a shop's page that uses a redirect, in a browser that keeps left pages, as a customer's browser does."""
    # Playwright turns this cache off.
    async with opened_chromium("--disable-back-forward-cache") as browser, AsyncExitStack() as stack:
        tabs = Tabs(browser, stack)
        page = await tabs.open()
        await page.goto(site.page(merchant, display="redirect", redirectConfirmUrl=f"{site.origin}/confirm"))
        await page.evaluate(
            "addEventListener('pageshow', (event) => (window.kept = event.persisted)); undefined"
        )
        yield page
        assert tabs.complaints == []


async def back(page: Page) -> None:
    """Go back to the shop's page, which the tab showed first, after its blank page."""
    await page.evaluate("history.go(2 - history.length)")
    await page.wait_for_function("window.kept")


async def test_after_back_from_a_redirect_the_page_hears_it_and_its_button_opens_the_checkout_again(
    kept: Page, site: Site, merchant: Merchant, service: Running
) -> None:
    await kept.locator("#buy").click()
    await kept.get_by_label("Mobile phone number").wait_for()
    await back(kept)
    assert await heard(kept, "onClose") == "closed_by_customer"
    await heard(kept, "onClose done")
    await kept.locator("#buy").click()
    await buy(kept)
    await kept.get_by_role("heading", name="Welcome back").wait_for()
    assert await the_order(service, merchant) == "Approved"


async def test_after_back_from_a_paid_checkout_the_page_hears_the_payment(
    kept: Page, site: Site, merchant: Merchant, service: Running
) -> None:
    await kept.locator("#buy").click()
    await buy(kept)
    await kept.get_by_role("heading", name="Welcome back").wait_for()
    await back(kept)
    assert (await heard(kept, "onComplete"))["orderId"] in site.asked[-1][1]
    assert "onClose" not in await all_heard(kept)
    assert await the_order(service, merchant) == "Approved"
