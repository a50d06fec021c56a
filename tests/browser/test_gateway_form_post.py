"""A real browser posts the gateway's form from a shop's page: the signature must match what the browser encodes."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Awaitable, Callable

import pytest
from playwright.async_api import Page, Route, expect

from support.gateway import SHOP, Fields, form_fields, signed
from support.makers import Merchant

OpenTab = Callable[..., Awaitable[Page]]
VALUES = {
    "order.customer.firstName": "Zoë ~*",
    "order.lineItems[0].name": "Café & 'thé' (日本) \"x\" + 100% ☕",
    # Browsers send a line break as CR LF, so it must be signed as CR LF.
    "description": "one\r\ntwo",
}


async def post(page: Page, merchant: Merchant, fields: Fields) -> None:
    """Open a page of the shop with the form, and press its button."""
    hidden = "".join(
        f'<input type="hidden" name="{html.escape(name)}" value="{html.escape(value)}">'
        for name, value in fields
    )
    action = f"{merchant.service.settings.public_url}/orders/authorize"
    form = f'<!doctype html><meta charset="utf-8"><form method="post" action="{action}">{hidden}<button>Pay in four</button></form>'

    async def answer(route: Route) -> None:
        await route.fulfill(body=form, content_type="text/html; charset=utf-8")

    await page.route(f"{SHOP}/**", answer)
    await page.goto(f"{SHOP}/pay")
    await page.get_by_role("button", name="Pay in four").click()


async def test_a_signed_form_leads_the_browser_to_the_checkout_and_back(
    open_tab: OpenTab, merchant: Merchant
) -> None:
    page = await open_tab()
    await post(page, merchant, signed(merchant, form_fields(merchant, **VALUES)))
    await expect(page.get_by_role("heading", name="Pay in four")).to_be_visible()
    # Reloading the page or posting the form again leads to the same order and to the step that this browser had
    # reached.
    first = page.url.partition("?")[0]
    await post(page, merchant, signed(merchant, form_fields(merchant, **VALUES)))
    await expect(page).to_have_url(first)
    order_id = re.findall(r"[0-9a-f-]{36}", first)[-1]
    record = (await merchant.http.get(f"/order/{order_id}")).json()
    assert record["items"][0]["name"] == VALUES["order.lineItems[0].name"]
    assert record["description"] == VALUES["description"]
    await page.get_by_role("button", name="Cancel and return").click()
    await page.wait_for_url(f"{SHOP}/cancel*")


@pytest.mark.parametrize("width", [375, 1280])
async def test_for_a_broken_form_the_shopper_sees_an_error_and_a_way_back(
    open_tab: OpenTab, merchant: Merchant, width: int
) -> None:
    page = await open_tab()
    await page.set_viewport_size({"width": width, "height": 800})
    broken = form_fields(merchant, capture="yes", metadata=json.dumps({}), **{"order.amount": "x" * 300})
    await post(page, merchant, signed(merchant, broken))
    await expect(page.get_by_role("heading", level=1)).to_have_text("This payment could not be started")
    await expect(page.get_by_text("capture must be true or false")).to_be_visible()
    await page.wait_for_load_state("load")
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    await page.get_by_role("link", name="Go back to the shop").click()
    await page.wait_for_url(f"{SHOP}/cancel")


async def test_the_page_for_a_wrong_signature_fits_a_phone_s_screen(
    open_tab: OpenTab, merchant: Merchant
) -> None:
    page = await open_tab()
    await page.set_viewport_size({"width": 375, "height": 800})
    await post(page, merchant, [*form_fields(merchant, **VALUES), ("signature", "x" * 44)])
    await expect(page.get_by_text("The text that is signed")).to_be_visible()
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert await page.get_by_role("link", name="Go back to the shop").count() == 0
