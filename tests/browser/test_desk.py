"""The merchant's dashboard in a real browser: on a phone and wide, light and dark, with and without script, by keyboard."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyotp
import pytest
from playwright.async_api import Page, expect

from cuota.commands.desk import sandbox_link
from cuota.core.desk.role import Role
from cuota.flows.desk.change_team import invite
from cuota.flows.desk.index_orders import index_orders
from cuota.flows.desk.record import OPERATOR
from cuota.flows.desk.sign_in import make_link
from cuota.flows.merchant.manage_merchants import find_merchant
from cuota.flows.webhook.deliver_webhooks import publish_events
from cuota.web.app import ROUTES
from cuota.web.desk_routes import DESK
from support.browser.dashboards import is_page
from support.browser.screens import WIDE, look, look_everywhere
from support.browser.tabs import PHONE, OpenTab
from support.makers import PROFILE, Merchant, complete

pytestmark = pytest.mark.browser
# A name and an item of the greatest length that the API accepts, in which a line cannot break.
LONG = "Bartholomew" * 4
ITEMS = [
    {"name": "Trail socks", "price": "23.00", "quantity": 2},
    {"name": "W" * 300, "price": "54.00", "quantity": 1},
]


async def enter(page: Page, shop: Merchant, role: Role = Role.OWNER) -> None:
    merchant = await find_merchant(shop.service.context, str(shop.merchant_id))
    await page.goto(await sandbox_link(shop.service.context, merchant, role))
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text(shop.name)


async def sold(shop: Merchant) -> dict[str, Any]:
    """Make a captured order of a person with a very long name."""
    order = await shop.create("100.00", items=ITEMS, merchantReference="R" * 100)
    person = replace(PROFILE, given_names=LONG, surname=LONG)
    await complete(shop.service, shop.merchant_id, order, profile=person)
    await shop.move(order, "capture", "100.00")
    return order


async def test_every_page_fits_its_screen_and_breaks_no_rule_of_axe(
    open_tab: OpenTab, merchant: Merchant
) -> None:
    page = await open_tab()
    await enter(page, merchant)
    base = merchant.service.settings.public_url
    plain = [row.path for row in ROUTES if is_page(row, DESK)]
    for path in plain:
        await page.goto(base + path)
        await look_everywhere(page, f"{path}, empty")
    order = await sold(merchant)
    for _ in range(3):
        await merchant.create("20.00")
    one = f"/desk/orders/{order['orderId']}"
    for path in (
        *plain,
        one,
        f"{one}/refund",
        f"{one}/refund?amount=abc",
        f"{one}/void",
        "/desk/orders?q=nothing",
    ):
        await page.goto(base + path)
        await look_everywhere(page, path)


@pytest.mark.parametrize("script", [True, False], ids=["with script", "without script"])
async def test_a_developer_adds_a_credential_and_sees_its_secret_once(
    open_tab: OpenTab, merchant: Merchant, *, script: bool
) -> None:
    page = await open_tab(viewport=WIDE, java_script_enabled=script)
    await enter(page, merchant, Role.DEVELOPER)
    await page.get_by_role("link", name="Developers").click()
    await page.get_by_label("Name").fill("warehouse")
    await page.get_by_label("May do").select_option("capture")
    await page.locator("form:has(#name)").get_by_label("Reason").fill("for the warehouse")
    await page.get_by_role("button", name="Add the credential").click()
    await expect(page.get_by_text("client_secret")).to_be_visible()
    await page.get_by_role("link", name="I have copied them").click()
    await expect(page.get_by_text("Capture only").first).to_be_visible()


@pytest.mark.parametrize("script", [True, False], ids=["with script", "without script"])
async def test_a_support_person_refunds_one_item_in_three_clicks_after_the_search(
    open_tab: OpenTab, merchant: Merchant, *, script: bool
) -> None:
    order = await sold(merchant)
    page = await open_tab(viewport=WIDE, java_script_enabled=script)
    await enter(page, merchant, Role.SUPPORT)
    await publish_events(merchant.service.context)
    while await index_orders(merchant.service.context):
        pass
    await page.get_by_role("link", name="Orders", exact=True).click()
    await page.get_by_label("Find an order").fill("4242")
    await page.get_by_role("button", name="Search").click()
    await page.get_by_role("link", name="R" * 100).click()
    await page.get_by_role("link", name="Refund Trail socks, $46.00").click()
    await expect(page.get_by_role("heading", name="What will happen")).to_be_visible()
    await page.get_by_label("Reason").fill("The socks came back.")
    await page.get_by_role("button", name="Refund $46.00").click()
    await expect(page.get_by_role("status").first).to_contain_text("The refund is done.")
    assert (await merchant.read(order))["refundedAmount"] == 46.0


async def test_the_keyboard_alone_reaches_the_content_and_the_search(
    open_tab: OpenTab, merchant: Merchant
) -> None:
    page = await open_tab(viewport=WIDE)
    await enter(page, merchant)
    await page.goto(f"{merchant.service.settings.public_url}/desk/orders")
    await page.keyboard.press("Tab")
    await expect(page.get_by_role("link", name="Skip to the content")).to_be_focused()
    await page.keyboard.press("Enter")
    await page.keyboard.press("Tab")
    await expect(page.get_by_label("Find an order")).to_be_focused()
    await page.keyboard.type("nobody")
    await page.keyboard.press("Enter")
    await expect(page.get_by_text("No order matches")).to_be_visible()


async def test_a_new_person_joins_with_a_link_and_an_authenticator_app(
    open_tab: OpenTab, merchant: Merchant
) -> None:
    context = merchant.service.context
    person = await invite(
        context,
        merchant.merchant_id,
        OPERATOR,
        "Ana Silva",
        "ana@shop.example",
        Role.FINANCE,
        "new",
        mail=False,
    )
    address = await make_link(context, person, mail=False)
    assert address is not None
    page = await open_tab(viewport=PHONE)
    await page.goto(address)
    await page.get_by_role("button", name="Sign in").click()
    await look(page, "the key of the app")
    key = (await page.locator("code.key").inner_text()).replace(" ", "")
    await page.get_by_label("Code").fill("000000")
    await page.get_by_role("button", name="Continue").click()
    await expect(page.get_by_text("This code is not right")).to_be_visible()
    await look(page, "a wrong code")
    await page.get_by_label("Code").fill(pyotp.TOTP(key).now())
    await page.get_by_role("button", name="Continue").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text(merchant.name)


@pytest.mark.parametrize("how", [{}, {"java_script_enabled": False}], ids=["with script", "without script"])
async def test_a_button_of_the_sandbox_s_clock_sends_its_span(
    open_tab: OpenTab, merchant: Merchant, how: dict[str, Any]
) -> None:
    page = await open_tab(viewport=PHONE, **how)
    await enter(page, merchant)
    await page.goto(f"{merchant.service.settings.public_url}/desk/sandbox")
    await page.get_by_role("button", name="1 week").click()
    # The service of this test has no jobs that could pause, so it cannot move the clock. Without a span, its error
    # would ask for one.
    await expect(page.get_by_text("This process cannot move the clock.")).to_be_visible()


async def test_on_a_phone_the_menu_shows_where_the_person_is_and_the_end_of_a_session_is_one_word(
    open_tab: OpenTab, merchant: Merchant
) -> None:
    page = await open_tab(viewport=PHONE)
    await enter(page, merchant)
    await page.goto(merchant.service.settings.public_url + "/desk/me")
    await expect(page.locator(".menu [aria-current]")).to_have_text("Team")
    await expect(page.locator(".menu [aria-current]")).to_be_in_viewport(ratio=1)
    end = page.get_by_role("button", name="End the session")
    assert await end.evaluate("element => element.getClientRects().length") == 1
    assert await end.evaluate("element => element.getBoundingClientRect().height") < 48
