"""The checkout opens however the script is loaded and whatever policies the page has, without console errors."""

from __future__ import annotations

import pytest
from playwright.async_api import Page

from support.makers import Merchant, Running
from support.sdk_browser.hands import (
    DETAILS,
    Tabs,
    all_heard,
    buy,
    fill,
    framed,
    heard,
    modal_of,
    orders,
    popup_of,
    press_pay,
)
from support.sdk_browser.merchant_site import Site

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("variant", ["async", "twice", "strict"])
@pytest.mark.parametrize("display", ["popup", "iframe"])
async def test_the_script_works_on_every_kind_of_page(
    tab: Page, site: Site, merchant: Merchant, service: Running, variant: str, display: str
) -> None:
    await tab.goto(site.page(merchant, variant, display=display))
    await tab.wait_for_function("pay.version === '1'")
    await buy(await popup_of(tab) if display == "popup" else await modal_of(tab))
    await heard(tab, "onComplete done")
    assert await all_heard(tab) == ["onComplete", "status", "onComplete done"]
    assert list((await orders(service, merchant)).values()) == ["Approved"]


async def test_calls_queued_before_the_script_loads_are_made_in_order_and_an_unknown_one_raises_an_error(
    tabs: Tabs, tab: Page, site: Site, merchant: Merchant
) -> None:
    tabs.expect("there is no function nonsense")
    await tab.goto(site.page(merchant, "late"))
    await tab.evaluate("""() => {
        window.order = [];
        pay.q.push((pay) => order.push(pay.version), ["nonsense"], (pay) => order.push(typeof pay.apiCheckout.openCheckout));
        loadPay();
    }""")
    await tab.wait_for_function("order.length === 2")
    await tab.evaluate("pay.q.push(() => order.push('at once'))")
    assert await tab.evaluate("order") == ["1", "function", "at once"]
    assert tabs.known == 1
    await buy(await popup_of(tab))
    await heard(tab, "onComplete")


async def test_a_click_before_the_script_has_loaded_opens_the_checkout_once_it_has_loaded(
    tab: Page, site: Site, merchant: Merchant
) -> None:
    await tab.goto(site.page(merchant, "late"))
    await tab.locator("#buy").click()
    async with tab.expect_popup() as opening:
        await tab.evaluate("loadPay()")
    await buy(await opening.value)
    await heard(tab, "onComplete")


async def test_a_page_whose_policy_isolates_popups_gets_the_modal(
    tab: Page, site: Site, merchant: Merchant
) -> None:
    await tab.goto(site.page(merchant, "coop"))
    async with tab.expect_popup() as opening:
        await tab.locator("#buy").click()
    stray = await opening.value
    await buy(await modal_of(tab, click=False))
    await heard(tab, "onComplete")
    if not stray.is_closed():
        await stray.wait_for_event("close")


async def test_a_page_whose_policy_refuses_frames_navigates_to_the_checkout(
    tabs: Tabs, tab: Page, site: Site, merchant: Merchant
) -> None:
    tabs.expect("frame-src|Framing")
    await tab.goto(site.page(merchant, "unframed", display="iframe"))
    await tab.locator("#buy").click()
    await tab.get_by_label("Mobile phone number").wait_for()
    assert tab.url.startswith(site.base)
    await buy(tab)
    await tab.get_by_role("heading", name="Welcome back").wait_for()  # the checkout opens without a click


async def test_the_script_with_a_pinned_integrity_hash_runs(
    tabs: Tabs, site: Site, merchant: Merchant
) -> None:
    page = await tabs.open()
    await page.goto(site.page(merchant, "late"))
    await page.evaluate(
        """async (base) => {
        const bytes = await (await fetch(`${base}/v1/pay.js`)).arrayBuffer();
        const hex = [...new Uint8Array(await crypto.subtle.digest("SHA-256", bytes))].map((b) => b.toString(16).padStart(2, "0"));
        const sum = btoa(String.fromCharCode(...new Uint8Array(await crypto.subtle.digest("SHA-384", bytes))));
        const script = document.createElement("script");
        Object.assign(script, {crossOrigin: "anonymous", integrity: `sha384-${sum}`,
            src: `${base}/v1/pay-${hex.join("").slice(0, 16)}.js`});
        document.head.append(script);
    }""",
        site.base,
    )
    await page.wait_for_function("pay.version === '1'")


async def test_the_express_checkout_asks_for_a_shipping_address_and_the_page_gets_it(
    tab: Page, site: Site, merchant: Merchant
) -> None:
    await tab.goto(site.page(merchant, display="iframe", checkoutFlow="express", host=site.elsewhere))
    frame = await modal_of(tab)
    await fill(frame, phone="2125550142")
    await fill(frame, code="123456")
    await fill(frame, **DETAILS)
    await fill(
        frame,
        recipient="Grandma Rivera",
        address_line1="9 Elm Street",
        city="Boise",
        state="ID",
        postcode="83702",
    )
    await press_pay(frame)
    result = await heard(tab, "onComplete")
    assert result["shippingAddress"]["line1"] == "9 Elm Street"
    assert set(result) == {"customer", "orderId", "shippingAddress"}


async def test_the_frame_s_address_contains_the_order_and_no_token(
    tab: Page, site: Site, merchant: Merchant, service: Running
) -> None:
    await tab.goto(site.page(merchant, display="iframe", host=site.elsewhere))
    await modal_of(tab)
    (order_id,) = await orders(service, merchant)
    assert order_id in framed(tab).url
    assert "token=" not in framed(tab).url
