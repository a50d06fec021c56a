"""The account page in a real browser: with only a keyboard, without JavaScript, in every state and color scheme."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from playwright.async_api import Page, expect

from cuota.core.plan.hardship import SmallerPayments
from cuota.flows.plan.change_plan import agree_on_change, find_plan_to_change
from cuota.flows.plan.collect_installments import collect
from support.browser.screens import each_screen, look_everywhere, problems
from support.browser.shopper import CARD_THAT_PAYS, fill, paid, press
from support.browser.tabs import OpenTab
from support.makers import Merchant, Running, complete
from support.phones import phone_number

pytestmark = pytest.mark.browser
SCRIPTS = pytest.mark.parametrize(
    "how", [{}, {"java_script_enabled": False}], ids=["with script", "without script"]
)
FAILS_LATER, LOST_LATER = "4000000000000341", "4000000000009987"


@pytest.fixture
def number() -> str:
    """Return a new consumer's phone number."""
    return phone_number()


async def buy(
    service: Running, shop: Merchant, number: str, card: str = CARD_THAT_PAYS, amount: str = "100.00"
) -> str:
    """Make a plan of this number, and return the order's id."""
    order = await shop.create(amount)
    await complete(service, shop.merchant_id, order, card, phone=number)
    return str(order["orderId"])


async def enter(page: Page, service: Running, number: str) -> None:
    """Sign in with the number and the code."""
    await page.goto(f"{service.settings.public_url}/account")
    await fill(page, phone=number)
    await fill(page, code="123456")
    await expect(page.get_by_role("heading", name="Your plans")).to_be_visible()


@SCRIPTS
async def test_a_consumer_pays_early_changes_the_card_and_signs_out(
    open_tab: OpenTab, service: Running, auto_merchant: Merchant, number: str, how: dict[str, Any]
) -> None:
    order_id = await buy(service, auto_merchant, number)
    page = await open_tab(**how)
    await enter(page, service, number)
    await page.get_by_role("link", name=auto_merchant.name).click()
    await page.get_by_role("link", name="Pay $25.00 early").click()
    await page.get_by_role("button", name="Pay $25.00 now").dblclick()
    await expect(page.locator(".notice")).to_be_visible()
    await page.reload()
    await expect(page.get_by_role("link", name="Receipt of payment 2")).to_be_visible()
    assert await paid(service, order_id) == [2500, 2500]
    await page.goto(page.url.partition("?")[0])
    await page.get_by_role("link", name="Change the card").click()
    await fill(page, card_number="5555555555554444", card_expiry="12/39", card_cvc="737")
    await expect(page.get_by_role("status").first).to_contain_text("Your new card pays from now on")
    await expect(page.get_by_text("Mastercard ending 4444")).to_be_visible()
    await press(page, page.get_by_role("button", name="Sign out"))
    await expect(page.get_by_role("status").first).to_contain_text("You are signed out")
    await page.go_back()
    await expect(page.get_by_label("Mobile phone number")).to_be_visible()


async def test_the_account_page_works_without_a_mouse(
    open_tab: OpenTab, service: Running, auto_merchant: Merchant, number: str
) -> None:
    order_id = await buy(service, auto_merchant, number)
    page = await open_tab(viewport={"width": 1280, "height": 800})
    await page.goto(f"{service.settings.public_url}/account")
    for name, text in (("phone", number), ("code", "123456")):
        await tab_to(page, f"e.id === '{name}'")
        await page.keyboard.type(text)
        await strike(page, "Enter")
    for words in (auto_merchant.name, "Pay $25.00 early", "Pay $25.00 now", "Change the card"):
        await tab_to(page, f"e.textContent.trim() === '{words}'")
        await strike(page, "Enter")
    assert await paid(service, order_id) == [2500, 2500]
    for name, text in (("card_number", CARD_THAT_PAYS), ("card_expiry", "1239"), ("card_cvc", "737")):
        await tab_to(page, f"e.id === '{name}'")
        await page.keyboard.type(text)
    await strike(page, "Enter")
    await expect(page.get_by_text("Your new card pays from now on.")).to_be_visible()
    await tab_to(page, "e.textContent.startsWith('Receipt')")
    await strike(page, "Enter")
    await tab_to(page, "e.textContent === 'Sign out'")
    await strike(page, "Space")
    await expect(page.get_by_label("Mobile phone number")).to_be_visible()


async def strike(page: Page, key: str) -> None:
    """Press a key, and wait for the next page."""
    async with page.expect_navigation():
        await page.keyboard.press(key)


async def tab_to(page: Page, wanted: str) -> None:
    """Press Tab until the wanted element has the focus. Every element on the way must show that it has the focus."""
    for _ in range(40):
        if await page.evaluate(f"(e => e !== document.body && {wanted})(document.activeElement)"):
            return
        await page.keyboard.press("Tab")
        visible = "(e => e === document.body || getComputedStyle(e).outlineStyle !== 'none')(document.activeElement)"
        assert await page.evaluate(visible), await page.evaluate("document.activeElement.outerHTML")
    raise AssertionError(f"not reached by Tab: {wanted}")


# A link inside a sentence may be only as high as its line.
SMALL = """() => [...document.querySelectorAll("main a:not(.test a), main button, main summary, footer a, footer button")]
    .filter(e => e.getBoundingClientRect().height < 44).map(e => e.outerHTML)"""


class Inspector:
    """Checks the page as it is now. All problems are reported together at the end."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.found: list[str] = []

    async def look(self, state: str) -> None:
        async for screen in each_screen(self.page):
            where = f"{state}, {screen.name}"
            self.found += [f"{where}: {problem}" for problem in await problems(self.page, screen.rules)]
            self.found += [f"{where}: too small to touch: {each}" for each in await self.page.evaluate(SMALL)]

    async def visit(self, address: str, state: str) -> None:
        await self.page.goto(address)
        await self.look(state)


async def test_every_page_of_the_sign_in_is_accessible_and_fits_the_screen(
    open_tab: OpenTab, service: Running, number: str
) -> None:
    page = await open_tab()
    inspector = Inspector(page)
    await inspector.visit(f"{service.settings.public_url}/account", "phone")
    await fill(page, phone="12")
    await expect(page.get_by_label("Mobile phone number")).to_be_focused()
    await inspector.look("phone, wrong")
    await fill(page, phone=number)
    await inspector.look("code")
    await fill(page, code="0")
    await inspector.look("code, wrong")
    await press(page, page.get_by_role("button", name="Send a new code"))
    await inspector.look("code, sent again")
    await fill(page, code="123456")
    await inspector.look("no plans")
    await inspector.visit(f"{service.settings.public_url}/account/nowhere", "nowhere")
    await page.context.clear_cookies()
    await inspector.visit(f"{service.settings.public_url}/account/plans/a/b", "ended")
    assert inspector.found == []


async def test_every_state_of_a_plan_is_accessible_and_fits_the_screen(
    open_tab: OpenTab, service: Running, auto_merchant: Merchant, number: str
) -> None:
    page = await open_tab()
    inspector = Inspector(page)
    shop = auto_merchant.merchant_id
    bought = [await buy(service, auto_merchant, number, *more) for more in (
        (CARD_THAT_PAYS, "1999.99"), (FAILS_LATER, "1999.99"), (LOST_LATER, "100.00"))]  # fmt: skip
    plans = [f"{service.settings.public_url}/account/plans/{shop}/{order_id}" for order_id in bought]
    await enter(page, service, number)
    async with service.clock.moved(days=15):
        for order_id in bought[1:]:
            for _ in range(3):
                await collect(service.context, shop, UUID(order_id))
        await inspector.visit(f"{service.settings.public_url}/account", "list")
        for name, address in zip(("active", "overdue", "another card"), plans, strict=True):
            await inspector.visit(address, name)
            await inspector.visit(f"{address}/pay?all=1", f"{name}, pay")
        await press(page, page.get_by_role("button", name="Pay $"))
        await expect(page.get_by_role("alert")).to_contain_text("can no longer be used")
        await inspector.look("refused")
        await inspector.visit(f"{plans[2]}/card", "card")
        await page.get_by_text("Sandbox test cards").click()
        # The page itself shows the error, without a request.
        await page.locator("#card_number").fill("4242")
        await page.locator("form.ask button.primary").click()
        await expect(page.locator("#card_number")).to_be_focused()
        await inspector.look("card, wrong")
    await auto_merchant.move({"orderId": bought[0]}, "refund", "1600.00")
    await inspector.visit(plans[0], "refunded")
    await inspector.visit(f"{plans[0]}/agreement", "agreement")
    await page.get_by_text("Fingerprint of this text").click()
    await inspector.look("agreement, unfolded")
    await page.goto(plans[0])
    await press(page, page.get_by_role("link", name="Receipt"))
    await inspector.look("receipt")
    assert inspector.found == []


async def test_a_plan_that_was_changed_in_hardship_fits_the_screen_and_breaks_no_rule_of_axe(
    open_tab: OpenTab, service: Running, auto_merchant: Merchant, number: str
) -> None:
    order_id = UUID(await buy(service, auto_merchant, number, amount="1000.00"))
    given = auto_merchant.merchant_id, order_id
    found = await find_plan_to_change(service.context, *given)
    assert found is not None
    smaller = SmallerPayments(12, 14, found.before.plan[1].due_on)
    mark = found.before.mark
    await agree_on_change(service.context, *given, smaller, by="Ana", reason="called", mark=mark)
    page = await open_tab()
    await enter(page, service, number)
    await page.get_by_role("link", name=auto_merchant.name).click()
    for link in (None, "Agreed on"):
        if link:
            await page.get_by_role("link", name=link).click()
        await look_everywhere(page, link or "the plan")


async def test_a_printed_agreement_has_its_hash(
    open_tab: OpenTab, service: Running, auto_merchant: Merchant, number: str
) -> None:
    order_id = await buy(service, auto_merchant, number)
    page = await open_tab()
    await enter(page, service, number)
    base = f"{service.settings.public_url}/account/plans/{auto_merchant.merchant_id}"
    await page.goto(f"{base}/{order_id}/agreement")
    seen = "e => e.checkVisibility({contentVisibilityAuto: true, visibilityProperty: true})"
    fingerprint = page.locator(".fingerprint")
    assert not await fingerprint.evaluate(seen), "on the screen, this part is closed"
    await page.emulate_media(media="print")
    assert await fingerprint.evaluate(seen)
