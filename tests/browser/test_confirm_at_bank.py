"""A payment that the card's bank wants confirmed (3-D Secure), in a real browser, with the sandbox's test cards."""

from __future__ import annotations

import re
from typing import Any
from uuid import UUID

import pytest
from playwright.async_api import Page, expect

from support.browser.by_http import at_card
from support.browser.screens import look_everywhere
from support.browser.shopper import CARD_THAT_PAYS, card, fill, paid, press, press_pay
from support.browser.tabs import OpenTab, Shop
from support.makers import Merchant, Running, complete

pytestmark = pytest.mark.browser
SCRIPTS = pytest.mark.parametrize(
    "how", [{}, {"java_script_enabled": False}], ids=["with script", "without script"]
)
ALWAYS, ONCE, THEN_DECLINED = "4000002760003184", "4000002500003155", "4000008260003178"
PROCESSING = "4000000000003006"
BANK = re.compile("/sandbox-processor/confirm/")


async def at_bank(page: Page, shop: Shop, number: str = ALWAYS) -> str:
    """Pay with this card. The browser goes to the bank's page automatically. Return the order's id."""
    await at_card(page, shop)
    order_id = page.url.partition("?")[0].rpartition("/")[2]
    await card(page, number)
    await press_pay(page)
    await page.wait_for_url(BANK)
    await expect(page.get_by_role("heading", name="Confirm this payment")).to_be_visible()
    return order_id


@SCRIPTS
@pytest.mark.parametrize("number", [ALWAYS, ONCE])
async def test_the_browser_goes_to_the_bank_and_back_and_the_order_is_paid(
    open_tab: OpenTab, shop: Shop, service: Running, how: dict[str, Any], number: str
) -> None:
    page = await open_tab(**how)
    order_id = await at_bank(page, shop, number)
    await expect(page.locator("main")).to_contain_text("$22.49")
    assert await paid(service, order_id) == []
    await press(page, page.get_by_role("button", name="Confirm the payment"))
    await page.wait_for_url(f"{shop.url}/confirm?*")
    assert await paid(service, order_id) == [2249]


async def test_a_double_click_at_the_bank_gives_one_answer(
    open_tab: OpenTab, shop: Shop, service: Running
) -> None:
    page = await open_tab(java_script_enabled=False)
    order_id = await at_bank(page, shop)
    await page.get_by_role("button", name="Confirm the payment").dblclick()
    await page.wait_for_url(f"{shop.url}/confirm?*")
    assert await paid(service, order_id) == [2249]


@SCRIPTS
async def test_back_from_the_bank_shows_the_page_where_another_card_can_be_used(
    open_tab: OpenTab, shop: Shop, service: Running, how: dict[str, Any]
) -> None:
    page = await open_tab(**how)
    order_id = await at_bank(page, shop)
    # The browser's history may have the checkout's page that goes to the bank automatically. Back must not be trapped
    # there.
    await page.goto(f"{service.settings.public_url}/checkout/{shop.merchant.merchant_id}/{order_id}")
    await expect(page.get_by_role("heading", name="Confirm with your bank")).to_be_visible()
    await press(page, page.get_by_role("link", name="Go to your bank"))
    await page.go_back()
    await expect(page.get_by_role("heading", name="Confirm with your bank")).to_be_visible()
    await press(page, page.get_by_role("button", name="Use another card instead"))
    await expect(page.get_by_role("alert")).to_contain_text(
        "That payment was canceled, and nothing was charged"
    )
    await card(page)
    await press_pay(page)
    await page.wait_for_url(f"{shop.url}/confirm?*")
    assert await paid(service, order_id) == [2249]


async def test_back_from_the_bank_does_not_go_to_the_bank_again_automatically(
    open_tab: OpenTab, shop: Shop
) -> None:
    page = await open_tab()
    await at_bank(page, shop)
    await page.go_back()
    await expect(
        page.get_by_role("heading", name=re.compile("Confirm with your bank|Review and pay"))
    ).to_be_visible()
    assert "said=asked" not in page.url
    await page.reload()
    await expect(page.get_by_role("heading", name="Confirm with your bank")).to_be_visible()
    await expect(page.get_by_text("Taking you to your bank")).to_have_count(0)


@SCRIPTS
@pytest.mark.parametrize(
    ("number", "button"), [(ALWAYS, "Do not confirm"), (THEN_DECLINED, "Confirm the payment")]
)
async def test_a_payment_that_fails_at_the_bank_is_reported_and_another_card_pays(
    open_tab: OpenTab, shop: Shop, service: Running, how: dict[str, Any], number: str, button: str
) -> None:
    page = await open_tab(**how)
    order_id = await at_bank(page, shop, number)
    await press(page, page.get_by_role("button", name=button))
    await expect(page.get_by_role("alert")).to_contain_text("Try another card")
    assert await paid(service, order_id) == []
    await card(page)
    await press_pay(page)
    await page.wait_for_url(f"{shop.url}/confirm?*")
    assert await paid(service, order_id) == [2249]


async def test_a_confirmation_at_the_bank_works_without_a_mouse(
    open_tab: OpenTab, shop: Shop, service: Running
) -> None:
    page = await open_tab()
    await at_card(page, shop)
    order_id = page.url.partition("?")[0].rpartition("/")[2]
    for name, text in (("card_number", ALWAYS), ("card_expiry", "1239"), ("card_cvc", "737"), ("agree", " ")):
        await tab_to(page, f"e.id === '{name}'")
        await page.keyboard.type(text)
    await page.keyboard.press("Enter")
    await page.wait_for_url(BANK)
    await tab_to(page, "e.textContent === 'Confirm the payment'")
    await page.keyboard.press("Enter")
    await page.wait_for_url(f"{shop.url}/confirm?*")
    assert await paid(service, order_id) == [2249]


async def tab_to(page: Page, wanted: str) -> None:
    for _ in range(40):
        if await page.evaluate(f"(e => e !== document.body && {wanted})(document.activeElement)"):
            return
        await page.keyboard.press("Tab")
    raise AssertionError(f"not reached by Tab: {wanted}")


async def test_a_card_that_stays_in_progress_shows_the_working_page_until_its_bank_has_answered(
    open_tab: OpenTab, shop: Shop, service: Running
) -> None:
    page = await open_tab()
    await at_card(page, shop)
    order_id = page.url.partition("?")[0].rpartition("/")[2]
    await card(page, PROCESSING)
    await press_pay(page)
    await expect(page.get_by_role("heading", name="Your payment is on its way")).to_be_visible()
    async with service.clock.moved(seconds=61):
        await page.wait_for_url(f"{shop.url}/confirm?*")  # the page reloads automatically
    assert await paid(service, order_id) == [2249]


@SCRIPTS
async def test_each_of_several_payments_from_the_account_is_confirmed_at_the_bank_of_a_card_that_was_changed_there(
    open_tab: OpenTab, service: Running, auto_merchant: Merchant, how: dict[str, Any]
) -> None:
    number = "3235550177" if how else "3235550178"
    order = await auto_merchant.create("100.00")
    await complete(service, auto_merchant.merchant_id, order, CARD_THAT_PAYS, phone=number)
    order_id = str(order["orderId"])
    page = await open_tab(**how)
    await page.goto(f"{service.settings.public_url}/account")
    await fill(page, phone=number)
    await fill(page, code="123456")
    plan = f"{service.settings.public_url}/account/plans/{auto_merchant.merchant_id}/{UUID(order_id)}"
    await page.goto(f"{plan}/card")
    posted: list[str] = []
    page.on("request", lambda request: posted.append(f"{request.url} {request.post_data or ''}"))
    await fill(page, card_number=ALWAYS, card_expiry="12/39", card_cvc="737")
    await expect(page.get_by_role("status").first).to_contain_text("Your new card pays from now on")
    in_forms = [each for each in posted if each.startswith(f"{plan}/card ") and ALWAYS in each]
    assert len(in_forms) == (0 if not how else 1)
    await page.goto(f"{plan}/pay?all=1")
    for left in ("$75.00", "$50.00", "$25.00"):
        await page.get_by_role("button", name=f"Pay {left} now").click()
        await page.wait_for_url(BANK)
        await expect(page.locator("main")).to_contain_text("$25.00")
        await press(page, page.get_by_role("button", name="Confirm the payment"))
        await expect(page.get_by_role("status").first).to_contain_text("Your payment went through")
    await expect(page.get_by_role("heading", name="Nothing left to pay")).to_be_visible()
    assert await paid(service, order_id) == [2500] * 4


@SCRIPTS
async def test_the_browser_is_remembered_after_a_payment_with_a_confirmation_like_after_any_other(
    open_tab: OpenTab, shop: Shop, how: dict[str, Any]
) -> None:
    page = await open_tab(**how)
    await at_bank(page, shop, ONCE)
    assert "remembered" not in {each["name"] for each in await page.context.cookies()}
    await press(page, page.get_by_role("button", name="Confirm the payment"))
    await page.wait_for_url(f"{shop.url}/confirm?*")
    # Do not use `to_checkout`, which expects the step with the phone number.
    await page.goto(shop.url)
    await press(page, page.get_by_role("button", name="Gooseneck Kettle"))
    await press(page, page.get_by_role("button", name="Continue to pay in four"))
    await expect(page.get_by_role("heading", name="Welcome back")).to_be_visible()
    names = {each["name"] for each in await page.context.cookies()}
    assert ("remembered" in names, "waits" in names) == (True, False)


@SCRIPTS
async def test_another_card_can_be_used_at_the_account_while_a_payment_waits_for_its_confirmation(
    open_tab: OpenTab, service: Running, auto_merchant: Merchant, how: dict[str, Any]
) -> None:
    number = "3235550179" if how else "3235550181"
    order = await auto_merchant.create("100.00")
    await complete(service, auto_merchant.merchant_id, order, CARD_THAT_PAYS, phone=number)
    order_id = str(order["orderId"])
    page = await open_tab(**how)
    await page.goto(f"{service.settings.public_url}/account")
    await fill(page, phone=number)
    await fill(page, code="123456")
    plan = f"{service.settings.public_url}/account/plans/{auto_merchant.merchant_id}/{UUID(order_id)}"
    await page.goto(f"{plan}/card")
    await fill(page, card_number=ALWAYS, card_expiry="12/39", card_cvc="737")
    await expect(page.get_by_role("status").first).to_contain_text("Your new card pays from now on")
    await page.goto(f"{plan}/pay?number=2")
    await page.get_by_role("button", name="Pay $25.00 now").click()
    await page.wait_for_url(BANK)
    bank = page.url
    await page.goto(plan)
    await press(page, page.get_by_role("button", name="Use another card instead"))
    await expect(page.get_by_role("heading", name="Change the card")).to_be_visible()
    await expect(page.get_by_role("alert")).to_contain_text(
        "That payment was canceled, and nothing was charged"
    )
    await fill(page, card_number=CARD_THAT_PAYS, card_expiry="12/39", card_cvc="737")
    await expect(page.get_by_role("status").first).to_contain_text("Your new card pays from now on")
    await page.goto(bank)
    await expect(page.get_by_role("heading", name="This confirmation has ended")).to_be_visible()
    await page.goto(f"{plan}/pay?number=2")
    await expect(page.locator("main")).to_contain_text("ending 4242")
    await expect(page.get_by_role("button", name="Pay $25.00 now")).to_be_visible()
    assert await paid(service, order_id) == [2500]


async def test_the_pages_of_a_confirmation_are_accessible_and_fit_the_screen(
    open_tab: OpenTab, shop: Shop, service: Running
) -> None:
    page = await open_tab()
    order_id = await at_bank(page, shop)
    await look_everywhere(page, "bank")
    bank = page.url
    await page.goto(f"{service.settings.public_url}/checkout/{shop.merchant.merchant_id}/{order_id}")
    await expect(page.get_by_role("heading", name="Confirm with your bank")).to_be_visible()
    await look_everywhere(page, "confirm")
    await page.goto(bank)
    await press(page, page.get_by_role("button", name="Do not confirm"))
    await page.goto(bank)
    await expect(page.get_by_role("heading", name="This confirmation has ended")).to_be_visible()
    await look_everywhere(page, "ended")
