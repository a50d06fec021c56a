"""A person buys in the shop and pays in the hosted checkout, in a real browser, on two origins."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.async_api import Page, expect

from support.browser.shopper import (
    CARD_DECLINED,
    CARD_THAT_PAYS,
    card,
    fill,
    last_order,
    paid,
    press_pay,
    to_card,
    to_checkout,
)
from support.browser.tabs import OpenTab, Shop
from support.makers import Running

pytestmark = pytest.mark.browser
SCRIPTS = pytest.mark.parametrize(
    "how", [{}, {"java_script_enabled": False}], ids=["with script", "without script"]
)


async def order_id(page: Page) -> str:
    """Return the id of the order in the checkout's address, or in the address of the shop's page after it."""
    parts = urlsplit(page.url)
    return parse_qs(parts.query).get("orderId", parts.path.split("/")[3:4])[0]


@SCRIPTS
async def test_a_purchase_ends_approved_and_is_captured_voided_and_refunded_in_the_back_office(
    open_tab: OpenTab, shop: Shop, service: Running, how: dict[str, Any]
) -> None:
    page = await open_tab(**how)
    await to_checkout(page, shop)
    assert page.url.startswith(f"{service.settings.public_url}/checkout/")
    await to_card(page)
    await card(page)
    await press_pay(page)
    await page.wait_for_url(f"{shop.url}/confirm?*")
    await expect(page.get_by_role("heading", name="Thank you")).to_be_visible()
    await page.get_by_role("link", name="See the shop's side of it").click()
    for kind, amount in (("capture", "60.00"), ("void", "9.95"), ("refund", "10.00")):
        await page.get_by_label(f"Amount in dollars to {kind}").fill(amount)
        await page.get_by_role("button", name=kind.capitalize(), exact=True).click()
        await expect(page.get_by_role("status")).to_contain_text(f"${amount}")
    shown = {
        name: await page.locator(f"[data-sum={name}]").inner_text()
        for name in ("captured", "voided", "refunded", "remaining")
    }
    assert shown == {"captured": "$60.00", "voided": "$9.95", "refunded": "$10.00", "remaining": "$20.00"}
    record = await last_order(page, shop)
    assert (record["orderStatus"], record["paymentState"], record["capturedAmount"]) == (
        "Approved",
        "PARTIALLY_CAPTURED",
        60,
    )


@SCRIPTS
async def test_a_purchase_that_risk_declines_ends_declined_and_the_cart_is_kept(
    open_tab: OpenTab, shop: Shop, how: dict[str, Any]
) -> None:
    page = await open_tab(**how)
    await to_checkout(page, shop)
    await to_card(page, surname="Declinetest")
    await card(page)
    await press_pay(page)
    await expect(page.get_by_role("heading", name="The payment did not go through")).to_be_visible()
    assert (await shop.merchant.read({"orderId": await order_id(page)}))["orderStatus"] == "Declined"
    await page.get_by_role("link", name="Back to your cart").click()
    await expect(page.get_by_text("Gooseneck Kettle").first).to_be_visible()


@SCRIPTS
async def test_a_purchase_that_is_canceled_ends_abandoned_at_the_shop(
    open_tab: OpenTab, shop: Shop, how: dict[str, Any]
) -> None:
    page = await open_tab(**how)
    await to_checkout(page, shop)
    await fill(page, phone="2125550142")
    await page.get_by_role("button", name=f"Cancel and return to {shop.merchant.name}").click()
    await expect(page.get_by_role("heading", name="You left before paying")).to_be_visible()
    assert page.url.startswith(f"{shop.url}/cancel?")
    assert (await shop.merchant.read({"orderId": await order_id(page)}))["orderStatus"] == "Abandoned"


async def test_a_purchase_works_without_a_mouse(open_tab: OpenTab, shop: Shop) -> None:
    page = await open_tab(viewport={"width": 1280, "height": 800})
    await page.goto(shop.url)
    await tab_to(page, "e.textContent.includes('Hand Grinder') && e.matches('button')")
    await follow(page, "Enter", "/cart")
    await tab_to(page, "e.textContent.includes('Continue to pay in four')")
    await follow(page, "Enter", "/checkout/")
    for step in (
        {"phone": "2125550142"}, {"code": "123456"},
        {"given_names": "Jordan", "surname": "Rivera", "email": "jordan@mail.example", "address_line1": "1480 Mission Street",
         "city": "San Francisco", "state": "Cal", "postcode": "94103"},
    ):  # fmt: skip
        for name, text in step.items():
            await tab_to(page, f"e.id === '{name}'")
            await page.keyboard.type(text)
        async with page.expect_navigation():
            await page.keyboard.press("Enter")
    for name, text in (("card_number", CARD_THAT_PAYS), ("card_expiry", "1239"), ("card_cvc", "737")):
        await tab_to(page, f"e.id === '{name}'")
        await page.keyboard.type(text)
    await tab_to(page, "e.name === 'agree'")
    await page.keyboard.press("Space")
    await tab_to(page, "e.textContent.startsWith('Pay $')")
    async with page.expect_navigation():
        await page.keyboard.press("Space")
    await page.wait_for_url(f"{shop.url}/confirm?*")
    await expect(page.get_by_role("heading", name="Thank you")).to_be_visible()


async def tab_to(page: Page, wanted: str) -> None:
    """Press Tab until the wanted element has the focus. Every element on the way must show that it has the focus."""
    for _ in range(60):
        if await page.evaluate(f"(e => e !== document.body && {wanted})(document.activeElement)"):
            return
        await page.keyboard.press("Tab")
        visible = """(e => e === document.body || getComputedStyle(e).outlineStyle !== 'none')(document.activeElement)"""
        assert await page.evaluate(visible), await page.evaluate("document.activeElement.outerHTML")
    raise AssertionError(f"not reached by Tab: {wanted}")


async def follow(page: Page, key: str, address: str) -> None:
    """Press a key, and wait for the next page."""
    await page.keyboard.press(key)
    await page.wait_for_url(re.compile(re.escape(address)))


async def test_back_and_reload_during_a_checkout_lose_no_data_and_pay_nothing_twice(
    open_tab: OpenTab, shop: Shop, service: Running
) -> None:
    page = await open_tab()
    await to_checkout(page, shop)
    await to_card(page)
    await page.reload()
    await expect(page.get_by_label("Card number")).to_be_visible()
    await page.go_back()
    await page.go_forward()
    await page.reload()
    await expect(page.get_by_role("heading", name="Review and pay")).to_be_visible()
    await card(page, CARD_DECLINED)
    await press_pay(page)
    await expect(page.get_by_role("alert")).to_contain_text("Try another card")
    await page.reload()
    await card(page)
    await press_pay(page)
    await page.wait_for_url(f"{shop.url}/confirm?*")
    number = await order_id(page)
    await page.reload()
    await page.go_back(wait_until="commit")
    await page.wait_for_url(f"{shop.url}/confirm?*")
    await expect(page.get_by_role("heading", name="Thank you")).to_be_visible()
    assert await paid(service, number) == [2249]


@SCRIPTS
async def test_a_double_click_on_pay_is_one_approval_and_one_charge(
    open_tab: OpenTab, shop: Shop, service: Running, how: dict[str, Any]
) -> None:
    page = await open_tab(**how)
    await to_checkout(page, shop)
    await to_card(page)
    await card(page)
    await page.get_by_role("button", name="Pay $").dblclick()
    # Without a script, the second click may end the navigation of the first one. `wait_for_url` would fail then.
    await expect(page.get_by_role("heading", name="Thank you")).to_be_visible()
    assert page.url.startswith(f"{shop.url}/confirm?")
    assert await paid(service, await order_id(page)) == [2249]


async def test_a_card_number_is_grouped_while_it_is_typed_and_the_cursor_does_not_jump(
    open_tab: OpenTab, shop: Shop
) -> None:
    page = await open_tab()
    await to_checkout(page, shop)
    await to_card(page)
    number = page.get_by_label("Card number")
    await number.press_sequentially("4242424242")
    await expect(number).to_have_value("4242 4242 42")
    for _ in range(6):
        await number.press("ArrowLeft")
    await number.press_sequentially("7")
    await expect(number).to_have_value("4242 4724 242")
    assert await number.evaluate("field => field.selectionStart") == 7


async def test_a_busy_button_says_what_happens_and_ignores_a_second_press(
    open_tab: OpenTab, shop: Shop
) -> None:
    page = await open_tab()
    await to_checkout(page, shop)
    sent = []
    page.on("request", lambda request: sent.append(request.method) if request.method == "POST" else None)
    await page.get_by_label("Mobile phone number").fill("2125550142")
    said = await page.evaluate("""() => {
        const button = document.querySelector("form.ask button.primary");
        button.click();
        const text = button.textContent;
        button.form.requestSubmit();
        return [text, button.disabled, document.getElementById("busy").textContent];
    }""")
    await page.get_by_label("One-time code").wait_for()
    assert said == ["Sending your code…", True, "Sending your code…"]
    assert sent == ["POST"]
