"""A card that must be confirmed at its bank (3-D Secure), in the SDK's popup and in its modal on another site."""

from __future__ import annotations

import pytest
from playwright.async_api import Page, expect

from support.makers import Merchant, Running
from support.sdk_browser.hands import charges, heard, modal_of, orders, popup_of, press_pay, to_card
from support.sdk_browser.merchant_site import Site

pytestmark = pytest.mark.browser
ALWAYS = "4000002760003184"


@pytest.mark.parametrize("display", ["popup", "iframe"])
async def test_the_bank_s_page_opens_in_the_same_window_and_the_shop_s_page_gets_the_result(
    tab: Page, site: Site, merchant: Merchant, service: Running, display: str
) -> None:
    host = site.elsewhere if display == "iframe" else ""
    await tab.goto(site.page(merchant, host=host, display=display))
    place = await popup_of(tab) if display == "popup" else await modal_of(tab)
    await to_card(place)
    await press_pay(place, ALWAYS)
    await place.get_by_role("heading", name="Confirm this payment").wait_for()
    await place.get_by_role("button", name="Confirm the payment").click()
    result = await heard(tab, "onComplete")
    assert await heard(tab, "status") == "Approved"
    assert await charges(service, result["orderId"]) == [2500]


async def test_in_the_modal_a_consumer_who_does_not_confirm_can_use_another_card(
    tab: Page, site: Site, merchant: Merchant, service: Running
) -> None:
    await tab.goto(site.page(merchant, host=site.elsewhere, display="iframe"))
    frame = await modal_of(tab)
    await to_card(frame)
    await press_pay(frame, ALWAYS)
    await frame.get_by_role("button", name="Do not confirm").click()
    await expect(frame.get_by_role("alert")).to_contain_text("Try another card")
    await press_pay(frame)
    result = await heard(tab, "onComplete")
    assert list(await orders(service, merchant)) == [result["orderId"]]
