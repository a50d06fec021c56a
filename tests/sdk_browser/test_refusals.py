"""If a checkout cannot be opened, a text says why: wrong parameters, a wrong signature, no network, a slow network."""

from __future__ import annotations

import asyncio
from urllib.parse import quote

import pytest
from playwright.async_api import Page, Route, expect

from support.makers import Merchant, Running
from support.sdk_browser.hands import (
    Tabs,
    all_heard,
    buy,
    charges,
    heard,
    modal_gone,
    modal_of,
    orders,
    popup_of,
    press_pay,
    to_card,
)
from support.sdk_browser.merchant_site import Site

pytestmark = pytest.mark.browser
AUTHORIZE = "**/sdk/v1/checkouts"


async def test_a_wrong_signature_is_explained_with_the_sandbox_s_hint_and_the_window_closes(
    tabs: Tabs, tab: Page, site: Site, merchant: Merchant, service: Running
) -> None:
    tabs.expect("status of 401")
    await tab.goto(site.page(merchant, "forged"))
    async with tab.expect_popup() as opening:
        await tab.locator("#buy").click()
    (text,) = await heard(tab, "onError")
    assert text.startswith("The signature does not verify. ")
    assert "pass openCheckout exactly the string that was signed" in text
    popup = await opening.value
    if not popup.is_closed():
        await popup.wait_for_event("close")
    assert await orders(service, merchant) == {}
    assert (await tab.evaluate("promise"))["status"] == "error"


async def test_each_wrong_field_is_named_in_a_separate_message(
    tabs: Tabs, tab: Page, site: Site, merchant: Merchant
) -> None:
    tabs.expect("status of 400")
    await tab.goto(site.page(merchant, display="iframe", amount="-1", redirectConfirmUrl="nowhere"))
    await tab.locator("#buy").click()
    messages = await heard(tab, "onError")
    assert {text.partition(":")[0] for text in messages} == {"order.amount", "redirectConfirmUrl"}
    await modal_gone(tab)


async def test_missing_parameters_are_reported_without_opening_a_window(
    tab: Page, site: Site, merchant: Merchant
) -> None:
    await tab.goto(site.page(merchant))
    await tab.evaluate("pay.apiCheckout.openCheckout({}, '')")
    assert await heard(tab, "onError") == [
        "requestBody.merchantId is missing.",
        "requestBody.merchantReference is missing.",
        "requestBody.order is missing.",
        "signature is missing: sign the request body on your server.",
    ]
    assert len(tab.context.pages) == 1


async def test_a_page_without_its_own_origin_cannot_open_a_checkout(
    tabs: Tabs, tab: Page, site: Site, merchant: Merchant, service: Running
) -> None:
    tabs.expect("status of 403")
    shop = site.page(merchant, display="iframe")
    await tab.goto(f"{site.origin}/frame?sandbox=allow-scripts&url={quote(shop, safe='')}")
    frame = tab.frame_locator("#f")
    await frame.locator("#buy").click()
    await expect(frame.get_by_role("status").first).to_contain_text("without an origin of its own")
    assert await orders(service, merchant) == {}


@pytest.mark.parametrize("display", ["popup", "iframe"])
async def test_an_offline_browser_is_reported_in_the_window_and_to_the_page_and_a_retry_works(
    tabs: Tabs, tab: Page, site: Site, merchant: Merchant, service: Running, display: str
) -> None:
    tabs.expect("ERR_INTERNET_DISCONNECTED")
    await tab.goto(site.page(merchant, display=display))
    # After its first use, the browser has the blank window in its cache. A modal needs no request.
    await tab.context.set_offline(True)
    if display == "popup":
        async with tab.expect_popup() as opening:
            await tab.locator("#buy").click()
        await opening.value
    else:
        await tab.locator("#buy").click()
    (text,) = await heard(tab, "onError")
    assert "could not be reached" in text
    if display == "iframe":
        await expect(tab.get_by_role("status").last).to_contain_text("Nothing was charged")
    await tab.context.set_offline(False)
    if display == "iframe":
        await tab.get_by_role("button", name="Close payment").click()
        await buy(await modal_of(tab))
    else:
        await buy(await popup_of(tab))
    await heard(tab, "onComplete")
    assert list((await orders(service, merchant)).values()) == ["Approved"]


@pytest.mark.parametrize("display", ["popup", "iframe"])
async def test_an_unreachable_service_is_reported_in_the_window(
    tabs: Tabs, tab: Page, site: Site, merchant: Merchant, display: str
) -> None:
    tabs.expect("ERR_FAILED")
    await tab.goto(site.page(merchant, display=display))
    await tab.context.route(AUTHORIZE, lambda route: route.abort())
    if display == "popup":
        async with tab.expect_popup() as opening:
            await tab.locator("#buy").click()
        words = (await opening.value).locator("#failed:target")
    else:
        await tab.locator("#buy").click()
        words = tab.get_by_role("dialog").get_by_role("status")
    await expect(words).to_contain_text("Your payment could not be opened")
    await expect(words).to_contain_text("Nothing was charged.")
    assert len(await heard(tab, "onError")) == 1


@pytest.mark.parametrize("display", ["popup", "iframe"])
async def test_a_slow_network_is_reported_in_the_window_and_then_the_checkout_opens(
    tab: Page, site: Site, merchant: Merchant, display: str
) -> None:
    await tab.goto(site.page(merchant, display=display))
    free = asyncio.Event()

    async def slow(route: Route) -> None:
        await free.wait()
        await route.continue_()

    await tab.context.route(AUTHORIZE, slow)
    if display == "popup":
        async with tab.expect_popup() as opening:
            await tab.locator("#buy").click()
        popup = await opening.value
        await expect(popup.get_by_text("This takes longer than usual")).to_be_visible()
        free.set()
        await popup.get_by_label("Mobile phone number").wait_for()
    else:
        await tab.locator("#buy").click()
        await expect(tab.get_by_role("dialog").get_by_role("status")).to_contain_text(
            "takes longer than usual"
        )
        free.set()
        await modal_of(tab, click=False)
    assert await all_heard(tab) == []


@pytest.mark.parametrize("display", ["popup", "iframe"])
async def test_a_request_whose_answer_was_lost_is_repeated_and_makes_no_second_order(
    tabs: Tabs, tab: Page, site: Site, merchant: Merchant, service: Running, display: str
) -> None:
    tabs.expect("ERR_FAILED")
    await tab.goto(site.page(merchant, display=display))
    lost = []

    async def lose_one(route: Route) -> None:
        if lost:
            return await route.continue_()
        lost.append(await route.fetch())
        return await route.abort()

    await tab.context.route(AUTHORIZE, lose_one)
    await buy(await popup_of(tab) if display == "popup" else await modal_of(tab))
    await heard(tab, "onComplete")
    assert lost[0].status == 200
    assert list((await orders(service, merchant)).values()) == ["Approved"]


@pytest.mark.parametrize("committed", [True, False], ids=["after the charge", "before the charge"])
async def test_a_browser_that_closes_after_the_click_on_pay_pays_at_most_once(
    tabs: Tabs, site: Site, merchant: Merchant, service: Running, *, committed: bool
) -> None:
    from cuota.flows.webhook.deliver_webhooks import publish_events

    page = await tabs.open()
    await page.goto(site.page(merchant))
    popup = await popup_of(page)
    await to_card(popup)
    pressed = asyncio.Event()

    async def cut(route: Route) -> None:
        if committed:
            await route.fetch(max_redirects=0)
        pressed.set()
        # The request is neither answered nor forwarded before the browser closes.

    await popup.route("**/pay", cut)
    pressing = asyncio.create_task(press_pay(popup))
    await pressed.wait()
    pressing.cancel()
    await page.context.close()
    ((order_id, status),) = (await orders(service, merchant)).items()
    await publish_events(service.context)
    events = [
        each
        for each in (await merchant.http.get("/events")).json()["events"]
        if each["type"] == "order.approved"
    ]
    if committed:
        assert (status, await charges(service, order_id)) == ("Approved", [2500])
        (told,) = events
        sent = (await merchant.http.get(f"/events/{told['id']}/deliveries")).json()["deliveries"]
        assert [each["url"] for each in sent] == [f"{site.origin}/webhooks"]
    else:
        assert (status, await charges(service, order_id), events) == ("Created", [], [])
    # Another browser opens the same signed text and gets the same order, which is paid once in total.
    again = await tabs.open()
    await again.goto(site.page(merchant))
    if committed:
        await again.locator("#buy").click()
    else:
        await buy(await popup_of(again))
    assert (await heard(again, "onComplete"))["orderId"] == order_id
    assert await charges(service, order_id) == [2500]
