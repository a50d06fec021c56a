"""Every way in which a checkout ends without a payment, with its callback: window closed, Escape, declined, expired."""

from __future__ import annotations

import asyncio

import pytest
from playwright.async_api import Page, Request, expect

from support.makers import Merchant, Running
from support.sdk_browser.hands import (
    CARD_DECLINED,
    Tabs,
    all_heard,
    buy,
    charges,
    fill,
    framed,
    heard,
    modal_gone,
    modal_of,
    orders,
    popup_of,
    press_escape,
    press_pay,
    the_order,
    to_card,
)
from support.sdk_browser.merchant_site import Site

pytestmark = pytest.mark.browser
# The limit uses the page's own timer, because on a busy machine all timers of the page are late together.
A_SECOND_AFTER_CLOSING = """() => {
    const look = setInterval(() => {
        if (!popup.closed) return;
        clearInterval(look);
        setTimeout(() => { window.secondLater = Date.now(); }, 1000);
    }, 10);
}"""


async def test_a_popup_that_the_customer_closes_is_noticed_within_a_second_and_the_order_is_still_open(
    tab: Page, site: Site, merchant: Merchant, service: Running
) -> None:
    await tab.goto(site.page(merchant))
    await tab.evaluate(
        "() => { const open = window.open; window.open = (...all) => (window.popup = open(...all)); }"
    )
    popup = await popup_of(tab)
    await tab.evaluate(A_SECOND_AFTER_CLOSING)
    async with tab.expect_request("**/sdk/v1/checkouts") as asking:
        await popup.close()
    asked: Request = await asking.value
    assert await heard(tab, "onClose") == "closed_by_customer"
    second_later = await (await tab.wait_for_function("window.secondLater")).json_value()
    assert asked.timing["startTime"] < second_later
    assert await the_order(service, merchant) == "Created"
    # The customer can then come back to the same order.
    await buy(await popup_of(tab))
    await heard(tab, "onComplete")
    assert list((await orders(service, merchant)).values()) == ["Approved"]


async def test_a_popup_that_is_closed_after_the_payment_is_reported_as_complete(
    tabs: Tabs, tab: Page, site: Site, merchant: Merchant, service: Running
) -> None:
    await tab.goto(site.page(merchant))
    popup = await popup_of(tab)
    await to_card(popup)
    # The customer closes the popup before its message reaches the page.
    tabs.expect("ERR_FAILED")
    await popup.route("**/static/page.js", lambda route: route.abort())
    await press_pay(popup)
    await popup.get_by_role("heading", name="Your order is confirmed").wait_for()
    await popup.close()
    assert (await heard(tab, "onComplete"))["orderId"] in await orders(service, merchant)
    assert await heard(tab, "status") == "Approved"
    await heard(tab, "onComplete done")
    assert "onClose" not in await all_heard(tab)


async def test_leaving_the_checkout_by_its_cancel_link_ends_the_order(
    tab: Page, site: Site, merchant: Merchant, service: Running
) -> None:
    await tab.goto(site.page(merchant))
    popup = await popup_of(tab)
    async with popup.expect_event("close"):
        await popup.get_by_role("button", name="Cancel and return").click()
    assert await heard(tab, "onClose") == "closed_by_customer"
    assert await the_order(service, merchant) == "Abandoned"
    assert await tab.evaluate("promise") == {"status": "closed", "message": "closed_by_customer"}


@pytest.mark.parametrize("inside", [False, True], ids=["on the modal", "in its frame"])
async def test_escape_closes_the_modal_and_the_focus_returns_to_its_previous_element(
    tab: Page, site: Site, merchant: Merchant, *, inside: bool
) -> None:
    await tab.goto(site.page(merchant, display="iframe", host=site.elsewhere))
    frame = await modal_of(tab)
    if inside:
        await frame.get_by_role("button", name="Cancel and return").focus()
    else:
        await tab.get_by_role("button", name="Close payment").focus()
    press_escape(tab)
    assert await heard(tab, "onClose") == "closed_by_customer"
    await modal_gone(tab)
    await expect(tab.locator("#buy")).to_be_focused()


async def test_the_modal_takes_and_keeps_the_focus_and_locks_the_page_behind_it(
    tab: Page, site: Site, merchant: Merchant
) -> None:
    await tab.goto(site.page(merchant, display="iframe", host=site.elsewhere))
    frame = await modal_of(tab)
    await tab.wait_for_function(
        "document.querySelector('body > div:last-of-type').shadowRoot.activeElement?.localName === 'iframe'"
    )
    assert await tab.evaluate("getComputedStyle(document.documentElement).overflow") == "hidden"
    await fill(frame, phone="2125550142")
    await frame.get_by_label("One-time code").wait_for()
    await tab.keyboard.type("12")
    await expect(frame.get_by_label("One-time code")).to_have_value("12")
    await tab.get_by_role("button", name="Close payment").focus()
    await tab.evaluate("pay.apiCheckout.focusCheckout()")
    assert await framed(tab).evaluate("document.hasFocus()")
    stops = set()
    for _ in range(14):
        await tab.keyboard.press("Tab")
        stops.add(
            await tab.evaluate(
                "document.activeElement === document.querySelector('body > div:last-of-type') ? 'modal' : document.activeElement.id || document.activeElement.localName"
            )
        )
    assert "buy" not in stops
    assert "modal" in stops
    await tab.get_by_role("button", name="Close payment").click()
    assert await heard(tab, "onClose") == "closed_by_customer"
    await modal_gone(tab)
    assert await tab.evaluate("getComputedStyle(document.documentElement).overflow") == "visible"


@pytest.mark.parametrize("display", ["popup", "iframe"])
async def test_a_declined_purchase_is_reported_as_declined(
    tab: Page, site: Site, merchant: Merchant, service: Running, display: str
) -> None:
    await tab.goto(site.page(merchant, display=display))
    await buy(await popup_of(tab) if display == "popup" else await modal_of(tab), surname="Declinetest")
    assert await heard(tab, "onClose") == "declined"
    assert await the_order(service, merchant) == "Declined"


async def test_after_a_declined_card_another_card_can_pay(
    tab: Page, site: Site, merchant: Merchant, service: Running
) -> None:
    await tab.goto(site.page(merchant, display="iframe", host=site.elsewhere))
    frame = await modal_of(tab)
    await to_card(frame)
    await press_pay(frame, CARD_DECLINED)
    await expect(frame.get_by_role("alert")).to_contain_text("Try another card")
    await press_pay(frame)
    result = await heard(tab, "onComplete")
    assert await charges(service, result["orderId"]) == [2500]


@pytest.mark.parametrize("display", ["popup", "iframe"])
async def test_an_expired_session_is_reported_as_session_expired(
    tabs: Tabs, tab: Page, site: Site, merchant: Merchant, service: Running, display: str
) -> None:
    await tab.goto(site.page(merchant, display=display))
    place = await popup_of(tab) if display == "popup" else await modal_of(tab)
    tabs.expect("status of 410")
    async with service.clock.moved(minutes=61):
        await fill(place, phone="2125550142")
        assert await heard(tab, "onClose") == "session_expired"


@pytest.mark.parametrize("display", ["popup", "iframe"])
async def test_the_shop_ends_the_session_and_the_order_is_abandoned(
    tab: Page, site: Site, merchant: Merchant, service: Running, display: str
) -> None:
    await tab.goto(site.page(merchant, display=display))
    place = await popup_of(tab) if display == "popup" else await modal_of(tab)
    await fill(place, phone="2125550142")
    await place.get_by_label("One-time code").wait_for()
    await tab.evaluate("pay.apiCheckout.closeCheckout()")
    assert await heard(tab, "onClose") == "closed_by_merchant"
    assert await the_order(service, merchant) == "Abandoned"
    await heard(tab, "onClose done")
    await modal_gone(tab)
    await tab.wait_for_function("promise.then((it) => it.message === 'closed_by_merchant')")


@pytest.mark.parametrize("display", ["popup", "iframe"])
async def test_the_shop_ends_the_session_before_the_checkout_has_loaded(
    tab: Page, site: Site, merchant: Merchant, service: Running, display: str
) -> None:
    await tab.goto(site.page(merchant, display=display))
    arrived, free = asyncio.Event(), asyncio.Event()

    async def late(route: object) -> None:
        arrived.set()
        await free.wait()
        await route.abort()  # type: ignore[attr-defined]

    await tab.context.route("**/checkout/*?token=*", late)
    await tab.locator("#buy").click()
    await arrived.wait()
    await tab.evaluate("pay.apiCheckout.closeCheckout()")
    assert await heard(tab, "onClose") == "closed_by_merchant"
    free.set()
    assert await the_order(service, merchant) == "Abandoned"
    await modal_gone(tab)
    await tab.wait_for_function("promise.then(() => true)")
    assert len(tab.context.pages) == 1
