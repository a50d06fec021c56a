"""The element `<pay-button>` is accessible, works by keyboard, and can start a virtual-card checkout."""

from __future__ import annotations

import json

import pytest
from playwright.async_api import Page, expect

from support.browser.screens import broken_rules
from support.makers import Merchant, Running
from support.sdk_browser.hands import (
    CARD_THAT_PAYS,
    DETAILS,
    Tabs,
    all_heard,
    buy,
    fill,
    heard,
    modal_of,
    orders,
    popup_of,
)
from support.sdk_browser.merchant_site import Site

pytestmark = pytest.mark.browser
LOOKS = pytest.mark.parametrize("scheme", ["light", "dark"])


async def test_a_purchase_by_the_button_works_without_a_mouse(
    tab: Page, site: Site, merchant: Merchant, service: Running
) -> None:
    await tab.goto(site.page(merchant, "button"))
    await tab.keyboard.press("Tab")
    assert await tab.evaluate("document.activeElement.id") == "buy"
    async with tab.expect_popup() as opening:
        await tab.keyboard.press("Enter")
    popup = await opening.value
    details = {**DETAILS, "state": "Cal"}
    for step in ({"phone": "2125550142"}, {"code": "123456"}, details):
        for name, text in step.items():
            await popup.locator(f"#{name}").wait_for()
            await tab_to(popup, name)
            await popup.keyboard.type(text)
        async with popup.expect_navigation():
            await popup.keyboard.press("Enter")
    for name, text in (
        ("card_number", CARD_THAT_PAYS),
        ("card_expiry", "1239"),
        ("card_cvc", "737"),
        ("agree", " "),
    ):
        await tab_to(popup, name)
        await popup.keyboard.type(text)
    await popup.keyboard.press("Enter")
    result = await heard(tab, "onComplete")
    assert await orders(service, merchant) == {result["orderId"]: "Approved"}


async def tab_to(page: Page, name: str) -> None:
    for _ in range(40):
        if await page.evaluate("document.activeElement.id") == name:
            return
        await page.keyboard.press("Tab")
    raise AssertionError(f"not reached by Tab: {name}")


@pytest.mark.parametrize("twice", [False, True], ids=["one click", "a double click"])
async def test_the_button_starts_a_virtual_card_checkout_and_the_page_gets_the_card(
    tab: Page, site: Site, merchant: Merchant, service: Running, *, twice: bool
) -> None:
    await tab.goto(site.page(merchant, "card", integrationType="virtual_card"))
    async with tab.expect_popup() as opening:
        await (tab.locator("#buy").dblclick() if twice else tab.locator("#buy").click())
    popup = await opening.value
    await popup.get_by_label("Mobile phone number").wait_for()
    assert await tab.locator("#buy").evaluate("it => it.busy")
    await buy(popup)
    result = await heard(tab, "onComplete")
    assert set(result) == {"card", "cardholder", "customer", "orderId"}
    assert set(result["card"]) == {"number", "cvc", "expirationMonth", "expirationYear", "brand"}
    assert result["cardholder"]["name"] == "Jordan Rivera"
    assert await orders(service, merchant) == {result["orderId"]: "Approved"}
    await tab.wait_for_function("!document.getElementById('buy').busy")
    # The browser reports a little later that the window has closed.
    if not popup.is_closed():
        await popup.wait_for_event("close")
    assert len(tab.context.pages) == 1
    assert await all_heard(tab) == ["onComplete", "status", "onComplete done"]


async def test_data_about_the_customer_that_the_click_event_adds_is_stored_with_the_order(
    tab: Page, site: Site, merchant: Merchant, service: Running
) -> None:
    await tab.goto(site.page(merchant, "card", integrationType="virtual_card"))
    await popup_of(tab)
    sql = "SELECT additional FROM sdk_checkouts WHERE merchant_id = $1"
    ((kept,),) = await service.context.pool.fetch(sql, merchant.merchant_id)
    assert json.loads(kept) == {
        "carrier": "click_event", "fields": {"customerLoggedIn": True, "customerTransactionCount": 7},
    }  # fmt: skip


async def test_the_button_refuses_a_request_that_was_not_signed_for_a_virtual_card(
    tab: Page, site: Site, merchant: Merchant, service: Running
) -> None:
    await tab.goto(site.page(merchant, "card"))
    await tab.locator("#buy").click()
    (text,) = await heard(tab, "onError")
    assert "integrationType" in text
    assert "virtual_card" in text
    assert await orders(service, merchant) == {}


async def test_after_a_lost_result_the_same_button_in_the_same_browser_gets_the_card_again(
    tab: Page, site: Site, merchant: Merchant, service: Running
) -> None:
    await tab.goto(site.page(merchant, "card", integrationType="virtual_card"))
    await buy(await popup_of(tab))
    first = await heard(tab, "onComplete")
    await tab.reload()
    await tab.locator("#buy").click()
    assert (await heard(tab, "onComplete"))["card"] == first["card"]
    assert await orders(service, merchant) == {first["orderId"]: "Approved"}


@LOOKS
async def test_the_sdk_s_own_windows_are_accessible(
    tabs: Tabs, site: Site, merchant: Merchant, scheme: str
) -> None:
    # No script opened this window, so it cannot close itself.
    tabs.expect("status of 400|Scripts may close only")
    page = await tabs.open(color_scheme=scheme, viewport={"width": 375, "height": 812})
    for news in ("", "#slow", "#failed"):
        await page.goto("about:blank")
        await page.goto(f"{site.base}/sdk/v1/window{news}")
        assert await broken_rules(page) == [], news
        await expect(page.get_by_role("heading", level=1)).to_have_count(1)
    await page.goto(site.page(merchant, checkoutFlow="express"))
    popup = await popup_of(page)
    await fill(popup, phone="2125550142")
    await fill(popup, code="123456")
    await fill(popup, **DETAILS)
    await popup.locator("[name=recipient]").wait_for()
    assert await broken_rules(popup) == []
    await fill(popup, recipient="", postcode="1")
    await popup.get_by_role("group", name="Please check").wait_for()
    assert await broken_rules(popup) == []


async def test_the_inspector_is_accessible(tab: Page, site: Site, merchant: Merchant) -> None:
    await tab.goto(site.page(merchant, "inspect"))
    await tab.get_by_text("Pay inspector").click()
    await popup_of(tab)
    await expect(tab.get_by_text("page → ready")).to_be_visible()
    assert await broken_rules(tab) == []


@LOOKS
async def test_the_button_is_accessible_in_each_of_its_states(
    tabs: Tabs, site: Site, merchant: Merchant, scheme: str
) -> None:
    page = await tabs.open(color_scheme=scheme)
    await page.goto(site.page(merchant, "button"))
    button = page.get_by_role("button", name="Pay in four")
    await expect(button).to_be_enabled()
    for state in ("", "disabled", "busy"):
        await page.locator("#buy").evaluate(
            "(it, state) => { it.disabled = state === 'disabled'; it.busy = state === 'busy'; }", state
        )
        assert await broken_rules(page) == [], state
    await expect(page.get_by_role("button", name="Payment is open")).to_have_attribute(
        "aria-disabled", "true"
    )


@LOOKS
@pytest.mark.parametrize("width", [375, 1280])
async def test_the_modal_is_accessible_and_fits(
    tabs: Tabs, site: Site, merchant: Merchant, scheme: str, width: int
) -> None:
    # Inside frames, axe uses the origin of one frame for all calls.
    tabs.expect("Failed to execute 'postMessage'")
    page = await tabs.open(color_scheme=scheme, viewport={"width": width, "height": 800})
    await page.goto(site.page(merchant, "button", display="iframe"))
    frame = await modal_of(page)
    assert await broken_rules(page) == []
    await expect(page.get_by_role("dialog", name="Payment")).to_be_visible()
    assert await frame.locator("html").evaluate("it => it.scrollWidth <= it.clientWidth")
    edges = await page.locator("dialog").bounding_box()
    assert edges is not None
    assert (edges["x"], edges["width"]) == ((0, 375) if width == 375 else (410, 460))
    box = await page.get_by_role("button", name="Close payment").bounding_box()
    assert box is not None
    assert min(box["width"], box["height"]) >= 44
