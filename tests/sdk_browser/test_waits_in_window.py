"""An order that waits for a person, in the SDK's windows: nothing is reported before the payment, and closing keeps the order."""

from __future__ import annotations

import pytest
from playwright.async_api import Page

from support import reviews
from support.makers import Merchant, Running
from support.sdk_browser.hands import (
    all_heard,
    heard,
    modal_of,
    orders,
    popup_of,
    press_pay,
    the_order,
    to_card,
)
from support.sdk_browser.merchant_site import Site

pytestmark = pytest.mark.browser
LOOKING = "We are looking at your order"


async def waiting(service: Running, merchant: Merchant) -> dict[str, str]:
    [order_id] = await orders(service, merchant)
    return {"orderId": order_id, "redirectUrl": f"http://x/checkout/{merchant.merchant_id}?token="}


@pytest.mark.parametrize("display", ["popup", "iframe"])
async def test_on_complete_is_called_after_the_approval_and_the_payment_and_not_before(
    tab: Page, site: Site, merchant: Merchant, service: Running, display: str
) -> None:
    await tab.goto(site.page(merchant, display=display))
    place = await popup_of(tab) if display == "popup" else await modal_of(tab)
    await to_card(place, surname="Refertest")
    await press_pay(place)
    await place.get_by_role("heading", name=LOOKING).wait_for()
    assert await all_heard(tab) == []
    await reviews.approve(service, await waiting(service, merchant))
    await place.get_by_role("link", name="Check again").click()
    await press_pay(place)
    await heard(tab, "onComplete")
    assert await the_order(service, merchant) == "Approved"


async def test_closing_the_window_keeps_the_order_and_a_click_opens_it_again(
    tab: Page, site: Site, merchant: Merchant, service: Running
) -> None:
    await tab.goto(site.page(merchant))
    popup = await popup_of(tab)
    await to_card(popup, surname="Refertest")
    await press_pay(popup)
    await popup.get_by_role("heading", name=LOOKING).wait_for()
    await popup.close()
    assert await heard(tab, "onClose") == "closed_by_customer"
    assert await the_order(service, merchant) == "Created"
    async with tab.expect_popup() as opening:
        await tab.locator("#buy").click()
    again = await opening.value
    await again.get_by_role("heading", name=LOOKING).wait_for()
    await reviews.decline(service, await waiting(service, merchant))
    await again.get_by_role("link", name="Check again").click()
    await tab.wait_for_function("heard.filter((each) => each.name === 'onClose').length === 2")
    told = await tab.evaluate("heard.filter((each) => each.name === 'onClose').map((each) => each.value)")
    assert told == ["closed_by_customer", "declined"]
