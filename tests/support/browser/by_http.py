"""Takes a tab to the card form without loading the pages before it: their forms go by HTTP, with the tab's cookies.

For tests of what happens on the card form and after it. `shopper.to_checkout` and `to_card` use each page.
"""

from __future__ import annotations

from urllib.parse import urljoin

from playwright.async_api import APIRequestContext, APIResponse, Page

from cuota.commands.checkout_walker import FormPage
from support.browser.shopper import DETAILS
from support.browser.tabs import Shop

PHONE_STEP, CODE_STEP = {"phone": "(212) 555-0142"}, {"code": "123456"}


async def at_card(page: Page, shop: Shop, **details: str) -> None:
    """Put a kettle into the cart, go to the checkout, fill in its first three pages, and open the card form in the tab."""
    http = page.context.request
    shown = await _send(http, await http.get(shop.url), sku="kettle")
    shown = await _send(http, shown, amount=None)
    for typed in (PHONE_STEP, CODE_STEP, {**DETAILS, **details}):
        shown = await _send(http, shown, **typed)
    await page.goto(shown.url)
    await page.get_by_label("Card number").wait_for()


async def _send(http: APIRequestContext, shown: APIResponse, **typed: str | None) -> APIResponse:
    """Fill in and send the form that has all these fields, and the same `sku` if it has one. Follows redirects.

    None keeps the value that the page gave.
    """
    assert shown.ok, f"{shown.status} {shown.url}"
    page = FormPage(await shown.text())
    given = {name: value for name, value in typed.items() if value is not None}
    for action, fields in page.forms:
        fits = typed.keys() <= fields.keys() and fields.get("sku", "") == given.get("sku", "")
        if fits:
            return await http.post(urljoin(shown.url, action), form={**fields, **given})
    raise AssertionError(f"{shown.url} has no form with the fields {', '.join(typed)}: {page.heading}")
