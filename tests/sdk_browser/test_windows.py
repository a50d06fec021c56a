"""A purchase in the SDK's popup, in its modal and by redirect: which callbacks the page gets, and when."""

from __future__ import annotations

import pytest
from playwright.async_api import Page, expect

from support.makers import Merchant, Running
from support.sdk_browser.hands import (
    Tabs,
    all_heard,
    buy,
    charges,
    framed,
    heard,
    modal_gone,
    modal_of,
    orders,
    popup_of,
    press_pay,
    the_order,
    to_card,
)
from support.sdk_browser.merchant_site import Site

pytestmark = pytest.mark.browser
DONE = ["onComplete", "status", "onComplete done"]


async def test_a_purchase_in_the_popup_tells_the_page_after_the_service_has_committed(
    tab: Page, site: Site, merchant: Merchant, service: Running
) -> None:
    await tab.goto(site.page(merchant))
    popup = await popup_of(tab)
    async with popup.expect_event("close"):
        await buy(popup)
    result = await heard(tab, "onComplete")
    assert await heard(tab, "status") == "Approved"
    (order_id,) = await orders(service, merchant)
    assert result["orderId"] == order_id
    assert set(result) == {"customer", "orderId"}
    assert result["customer"]["firstName"] == "Jordan"
    assert await tab.evaluate("promise") == {"status": "complete", "result": result}
    assert await all_heard(tab) == DONE
    assert await charges(service, order_id) == [2500]


async def test_a_purchase_in_the_modal_needs_no_cookie_and_then_returns_the_focus(
    tab: Page, site: Site, merchant: Merchant, service: Running
) -> None:
    await tab.goto(site.page(merchant, host=site.elsewhere, display="iframe"))
    frame = await modal_of(tab)
    await to_card(frame)
    assert await framed(tab).evaluate("document.cookie") == ""
    await press_pay(frame)
    result = await heard(tab, "onComplete")
    await modal_gone(tab)
    assert await heard(tab, "status") == "Approved"
    assert await tab.context.cookies() == []
    assert list(await orders(service, merchant)) == [result["orderId"]]
    await expect(tab.locator("#buy")).to_be_focused()
    assert await all_heard(tab) == DONE


async def test_a_purchase_in_the_popup_works_from_another_site_and_leaves_no_cookie_there(
    tab: Page, site: Site, merchant: Merchant
) -> None:
    await tab.goto(site.page(merchant, host=site.elsewhere))
    await buy(await popup_of(tab))
    await heard(tab, "onComplete")
    assert await tab.evaluate("cookiesOfThePage()") == ""
    assert {cookie["domain"] for cookie in await tab.context.cookies()} == {"127.0.0.1"}
    assert await tab.evaluate("[localStorage.length, sessionStorage.length]") == [0, 0]


async def test_a_redirect_goes_to_the_checkout_and_back_and_the_same_call_then_returns_the_result(
    tab: Page, site: Site, merchant: Merchant
) -> None:
    shop = site.page(merchant, display="redirect", redirectConfirmUrl=f"{site.origin}/confirm")
    await tab.goto(shop)
    await tab.locator("#buy").click()
    await buy(tab)
    await tab.get_by_role(
        "heading", name="Welcome back"
    ).wait_for()  # the page gets the result without a click
    assert tab.url.startswith(f"{site.origin}/confirm?")
    await tab.goto(shop)
    await tab.locator("#buy").click()
    assert (await heard(tab, "onComplete"))["orderId"] in site.asked[-1][1]
    assert tab.url == shop


async def test_a_blocked_popup_becomes_a_modal(tab: Page, site: Site, merchant: Merchant) -> None:
    # There was no click, so the browser blocks the window of a queued call.
    await tab.goto(site.page(merchant, "unasked"))
    await buy(await modal_of(tab, click=False))
    await heard(tab, "onComplete")
    assert len(tab.context.pages) == 1


@pytest.mark.parametrize("display", ["popup", "iframe"])
async def test_a_callback_s_promise_is_awaited_before_the_window_closes(
    tab: Page, site: Site, merchant: Merchant, display: str
) -> None:
    await tab.goto(site.page(merchant, display=display))
    await tab.evaluate("window.hold = new Promise((free) => (window.free = free)); undefined")
    place = await popup_of(tab) if display == "popup" else await modal_of(tab)
    await buy(place)
    await heard(tab, "status")
    if display == "iframe":
        await expect(tab.locator("dialog")).to_be_visible()
    else:
        assert len(tab.context.pages) == 2
    assert await all_heard(tab) == DONE[:2]
    await tab.evaluate("free()")
    await heard(tab, "onComplete done")
    if display == "iframe":
        await modal_gone(tab)
    else:
        await place.wait_for_event("close") if not place.is_closed() else None


async def test_a_double_click_opens_one_window_and_one_order_and_a_second_call_brings_it_to_the_front(
    tab: Page, site: Site, merchant: Merchant, service: Running
) -> None:
    await tab.goto(site.page(merchant))
    async with tab.expect_popup() as opening:
        await tab.locator("#buy").dblclick()
    popup = await opening.value
    await popup.get_by_label("Mobile phone number").wait_for()
    await tab.evaluate("buy(); pay.apiCheckout.focusCheckout()")
    assert len(tab.context.pages) == 2
    assert len(await orders(service, merchant)) == 1
    await buy(popup)
    await heard(tab, "onComplete done")
    assert await all_heard(tab) == DONE


async def test_both_names_of_the_sdk_refer_to_the_same_object(
    tabs: Tabs, site: Site, merchant: Merchant
) -> None:
    page = await tabs.open()
    await page.goto(site.page(merchant))
    assert await page.evaluate("pay.apiCheckout === pay.payApiCheckout && Object.keys(pay.apiCheckout).sort()") == [
        "closeCheckout", "focusCheckout", "onClose", "onComplete", "onError", "openCheckout",
    ]  # fmt: skip
    names = await page.evaluate("Object.keys(window).filter((name) => /pay/i.test(name))")
    assert set(names) == {"pay", "loadPay"}


async def test_opening_the_same_signed_text_after_the_payment_makes_no_second_order(
    tab: Page, site: Site, merchant: Merchant, service: Running
) -> None:
    await tab.goto(site.page(merchant))
    await buy(await popup_of(tab))
    first = await heard(tab, "onComplete")
    await tab.reload()
    await tab.locator("#buy").click()
    again = await heard(tab, "onComplete")
    assert again["orderId"] == first["orderId"]
    assert await the_order(service, merchant) == "Approved"
    assert await charges(service, first["orderId"]) == [2500]


async def test_a_page_that_navigates_away_in_its_callback_leaves_no_window_open(
    tab: Page, site: Site, merchant: Merchant
) -> None:
    await tab.goto(site.page(merchant))
    await tab.evaluate("pay.apiCheckout.onComplete(() => { location.href = '/confirm'; })")
    popup = await popup_of(tab)
    async with popup.expect_event("close"):
        await buy(popup)
    await expect(tab.get_by_role("heading", name="Welcome back")).to_be_visible()
