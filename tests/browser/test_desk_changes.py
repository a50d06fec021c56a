"""What a merchant's people change in the dashboard, in a real browser: endpoints, origins, bank account, settings; and the requests."""

from __future__ import annotations

import secrets

import pytest
from playwright.async_api import Page, expect

from cuota.commands.desk import sandbox_link
from cuota.core.desk.role import Role
from cuota.core.payout.bank_account import BankDetails
from cuota.db.desk import api_requests
from cuota.db.webhook import endpoints
from cuota.flows.context import new_id
from cuota.flows.desk.record import Actor, Cause
from cuota.flows.merchant.change_settings import set_brand, set_logo
from cuota.flows.merchant.manage_merchants import MerchantTerms, find_merchant, update_merchant
from cuota.flows.payout.change_bank_account import change_bank_account
from support.browser.screens import WIDE, look_everywhere
from support.browser.tabs import PHONE, OpenTab
from support.core.pictures import png
from support.makers import Merchant
from support.request_log import copy_of, written

pytestmark = pytest.mark.browser
LONG = "https://" + "a-very-long-name-of-a-shop." * 8 + "example"
CAUSE = Cause(Actor(None), "long names")
SCRIPT = pytest.mark.parametrize("script", [True, False], ids=["with script", "without script"])


async def enter(page: Page, shop: Merchant, role: Role = Role.OWNER) -> str:
    """Sign in, and return the address of the service."""
    merchant = await find_merchant(shop.service.context, str(shop.merchant_id))
    await page.goto(await sandbox_link(shop.service.context, merchant, role))
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text(shop.name)
    return shop.service.settings.public_url


async def give_brand(shop: Merchant) -> None:
    """Give the merchant a brand whose parts are as long as they may be."""
    context, merchant_id = shop.service.context, shop.merchant_id
    name = secrets.token_hex(4).upper() + "W" * 92
    await set_brand(
        context, merchant_id, name, "w" * 100 + "@" + "w" * 100 + ".example", f"{LONG}/help", CAUSE
    )
    await set_logo(context, merchant_id, png(1500, 16), CAUSE)


async def fill_up(shop: Merchant) -> dict[str, str]:
    """Give the merchant long names and many rows. Return the paths of the pages that show one thing."""
    context, merchant_id = shop.service.context, shop.merchant_id
    for number in range(30):
        await shop.http.post("/webhook-endpoints", json={"url": f"{LONG}/{number}", "description": "W" * 200})
    first, *_ = await endpoints.read_all(context.pool, merchant_id)
    await shop.http.post(f"/webhook-endpoints/{first.endpoint_id}/rotate-secret")
    terms = MerchantTerms(origins=tuple(f"{LONG}:{4000 + number}" for number in range(30)))
    await update_merchant(context, str(merchant_id), terms)
    await give_brand(shop)
    await change_bank_account(context, merchant_id, BankDetails("021000021", "998877664433"))
    order = await shop.approved("100.00", merchantReference="R" * 100)
    await shop.move(order, "capture", "999.00", "W" * 100)
    refused, *_ = await written(shop)
    copies = [copy_of(refused, new_id()) for _ in range(60)]
    await api_requests.add(context.pool, merchant_id, copies)
    return {
        "endpoint": f"/desk/endpoints/{first.endpoint_id}",
        "request": f"/desk/requests/{refused.request_id}",
        "order": f"/desk/orders/{order['orderId']}",
    }


async def test_the_pages_fit_their_screen_and_break_no_rule_of_axe_with_many_rows_and_long_names(
    open_tab: OpenTab, merchant: Merchant
) -> None:
    page = await open_tab()
    base = await enter(page, merchant)
    one = await fill_up(merchant)
    for path in (
        *one.values(), "/desk/requests", "/desk/requests?status=5", "/desk/requests?q=nonsense", "/desk/webhooks",
        "/desk/developers", "/desk/settings", "/desk/payouts", "/desk/payouts/bank", "/desk/orders?sort=largest", "/desk/audit",
    ):  # fmt: skip
        await page.goto(base + path)
        await look_everywhere(page, path)
    for path, button in (
        ("/desk/settings", "Save the amounts"), ("/desk/settings", "Save the logo"), ("/desk/payouts/bank", "Change the bank account"),
        ("/desk/payouts/bank", "Withdraw the change"), ("/desk/developers", "Add the origin"),
        ("/desk/webhooks", "Add the endpoint"), (one["endpoint"], "Save"), (one["endpoint"], "Remove the endpoint"),
    ):  # fmt: skip
        await page.goto(base + path)
        await page.get_by_role("button", name=button, exact=True).click()
        await expect(page.get_by_text("Say why, in a few words.")).to_be_visible()
        await look_everywhere(page, f"{button} without a reason")


async def test_the_checkout_shows_the_merchants_brand_and_breaks_no_rule_of_axe(
    open_tab: OpenTab, merchant: Merchant
) -> None:
    await give_brand(merchant)
    order = await merchant.create()
    page = await open_tab()
    await page.goto(order["redirectUrl"])
    await expect(page.get_by_text("W" * 92).first).to_be_visible()
    await expect(page.locator("img.shop-logo")).to_be_visible()
    await expect(page.get_by_role("link", name="Help page")).to_be_visible()
    await look_everywhere(page, "the checkout with a brand")


@SCRIPT
async def test_an_endpoint_is_added_edited_and_removed(
    open_tab: OpenTab, merchant: Merchant, *, script: bool
) -> None:
    page = await open_tab(viewport=PHONE, java_script_enabled=script)
    base = await enter(page, merchant, Role.DEVELOPER)
    await page.goto(f"{base}/desk/webhooks")
    await page.get_by_label("Address").fill("http://127.0.0.1:9/hooks")
    await page.get_by_label("Reason").fill("the stock system")
    await page.get_by_role("button", name="Add the endpoint").click()
    await expect(page.get_by_text("whsec_")).to_be_visible()
    await page.get_by_role("link", name="I have copied them").click()
    edit = page.locator("form:has(#url)")
    await edit.get_by_label("Description").fill("stock")
    await edit.get_by_label("Reason").fill("a name")
    await edit.get_by_role("button", name="Save").click()
    await expect(page.get_by_text("The endpoint was changed.")).to_be_visible()
    await page.get_by_role("button", name="Send a test").click()
    await expect(page.get_by_text("Not delivered")).to_be_visible()
    await page.locator("#reason-manage").fill("not used")
    await page.get_by_role("button", name="Remove the endpoint").click()
    await expect(page.get_by_text("No endpoint is registered.")).to_be_visible()


@SCRIPT
async def test_an_owner_changes_the_bank_account_and_withdraws_the_change(
    open_tab: OpenTab, merchant: Merchant, *, script: bool
) -> None:
    page = await open_tab(viewport=WIDE, java_script_enabled=script)
    await enter(page, merchant)
    await page.get_by_role("link", name="Payouts", exact=True).click()
    await page.get_by_role("link", name="Bank account").click()
    await page.get_by_label("Routing number").fill("021000021")
    for label in ("Account number", "Account number, again"):
        await page.get_by_label(label, exact=True).fill("998877664433")
    await page.get_by_label("Reason").fill("another bank")
    await page.get_by_role("button", name="Change the bank account").click()
    await expect(page.get_by_role("heading", name="A change is waiting")).to_be_visible()
    await page.locator("#reason-withdraw").fill("not us")
    await page.get_by_role("button", name="Withdraw the change").click()
    await expect(page.get_by_role("heading", name="A change is waiting")).to_be_hidden()
    await expect(page.get_by_text("The change was withdrawn.")).to_be_visible()


@SCRIPT
async def test_an_owner_narrows_the_order_amounts(
    open_tab: OpenTab, merchant: Merchant, *, script: bool
) -> None:
    page = await open_tab(viewport=WIDE, java_script_enabled=script)
    await enter(page, merchant)
    await page.get_by_role("link", name="Settings", exact=True).click()
    form = page.locator("form:has(#minimum)")
    await form.get_by_label("Smallest amount").fill("25.00")
    await form.get_by_label("Reason").fill("fees")
    await form.get_by_role("button", name="Save the amounts").click()
    await expect(page.get_by_text("$25.00 to $2,000.00")).to_be_visible()


@SCRIPT
async def test_a_developer_finds_a_refused_call_and_what_to_do(
    open_tab: OpenTab, merchant: Merchant, *, script: bool
) -> None:
    page = await open_tab(viewport=PHONE, java_script_enabled=script)
    base = await enter(page, merchant, Role.DEVELOPER)
    order = await merchant.approved()
    await merchant.move(order, "capture", "999.00", "ship-1")
    await written(merchant)
    await page.goto(f"{base}/desk/requests")
    await page.get_by_label("Status").select_option("4")
    await page.get_by_role("button", name="Search").click()
    await page.get_by_role("link", name="POST /order/{orderId}/capture").click()
    await expect(page.get_by_text('"merchantReference": "ship-1"')).to_be_visible()
    await page.get_by_role("link", name="What this error means").click()
    await expect(page).to_have_url(f"{base}/docs#capture_exceeds_authorized")
