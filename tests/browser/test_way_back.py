"""After the last form the browser returns to the merchant without a click, with JavaScript and without."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from playwright.async_api import Page, expect

from support.browser.by_http import at_card
from support.browser.shopper import (
    CARD_DECLINED,
    card,
    fill,
    last_order,
    press,
    press_pay,
    to_card,
    to_checkout,
)
from support.browser.tabs import OpenTab, Shop

pytestmark = pytest.mark.browser
SCRIPTS = pytest.mark.parametrize(
    "how", [{}, {"java_script_enabled": False}], ids=["with script", "without script"]
)


async def handed_back(page: Page, shop: Shop) -> dict[str, Any]:
    """Return the order's record, read with the token and the id that the browser brought to the shop."""
    query = parse_qs(urlsplit(page.url).query)
    record = await shop.merchant.read({"orderId": query["orderId"][0]})
    assert record["token"] == query["token"][0]
    return record


@SCRIPTS
async def test_after_the_payment_the_browser_goes_to_the_demo_shop_s_confirmation_page_without_a_click(
    open_tab: OpenTab, shop: Shop, how: dict[str, Any]
) -> None:
    page = await open_tab(**how)
    await at_card(page, shop)
    await card(page)
    await press_pay(page)
    await page.wait_for_url(f"{shop.url}/confirm?*")
    await expect(page.get_by_role("heading", name="Thank you")).to_be_visible()
    assert (await handed_back(page, shop))["orderStatus"] == "Approved"


@SCRIPTS
@pytest.mark.parametrize("by", ["risk", "cards"])
async def test_after_a_decline_the_page_shows_the_reasons_and_goes_to_the_shop_s_cancel_page_without_a_click(
    open_tab: OpenTab, shop: Shop, how: dict[str, Any], by: str
) -> None:
    page = await open_tab(**how)
    await at_card(page, shop, **({"surname": "Declinetest"} if by == "risk" else {}))
    for _ in range(1 if by == "risk" else 3):
        await card(page, CARD_DECLINED)
        await press_pay(page)
    await page.wait_for_url(f"{shop.url}/cancel?*")
    await expect(page.get_by_role("heading", name="The payment did not go through")).to_be_visible()
    assert (await handed_back(page, shop))["orderStatus"] == "Declined"


@SCRIPTS
@pytest.mark.parametrize("step", ["phone", "code", "pay"])
async def test_after_canceling_the_browser_goes_to_the_shop_s_cancel_page_without_another_click(
    open_tab: OpenTab, shop: Shop, how: dict[str, Any], step: str
) -> None:
    page = await open_tab(**how)
    await to_checkout(page, shop)
    if step == "code":
        await fill(page, phone="2125550142")
    elif step == "pay":
        await to_card(page)
    await press(page, page.get_by_role("button", name="Cancel and return to"))
    await page.wait_for_url(f"{shop.url}/cancel?*")
    await expect(page.get_by_role("heading", name="You left before paying")).to_be_visible()
    assert (await handed_back(page, shop))["orderStatus"] == "Abandoned"


@asynccontextmanager
async def _shop_that_moved() -> AsyncIterator[str]:
    """A merchant's server that redirects every request to its other name, as redirects to `www` and `https` do."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        target = head.split()[1].decode()
        host = next(line for line in head.split(b"\r\n") if line.lower().startswith(b"host:"))
        body = b"<title>Here</title><link rel=icon href='data:,'>There"
        if b"localhost" in host:
            status, more = "200 OK", f"Content-Type: text/html\r\nContent-Length: {len(body)}\r\n"
        else:
            status, more, body = "302 Found", f"Location: http://localhost:{port}{target}\r\n", b""
        writer.write(f"HTTP/1.1 {status}\r\n{more}Connection: close\r\n\r\n".encode() + body)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    async with server:
        yield f"http://127.0.0.1:{port}"


@pytest.mark.parametrize("ending", ["confirm", "cancel"])
async def test_the_browser_also_reaches_a_merchant_whose_address_redirects_to_another_host(
    open_tab: OpenTab, shop: Shop, ending: str
) -> None:
    async with _shop_that_moved() as moved:
        addresses = {"redirectConfirmUrl": f"{moved}/confirm", "redirectCancelUrl": f"{moved}/cancel"}
        order = await shop.merchant.create(merchant=addresses)
        page = await open_tab()
        await page.goto(order["redirectUrl"])
        if ending == "confirm":
            await to_card(page)
            await card(page)
            await press_pay(page)
        else:
            await press(page, page.get_by_role("button", name="Cancel and return to"))
        await page.wait_for_url(lambda url: urlsplit(url).hostname == "localhost")
        assert urlsplit(page.url).path == f"/{ending}"
        assert parse_qs(urlsplit(page.url).query)["orderId"] == [order["orderId"]]


async def test_back_from_the_shop_s_confirmation_page_does_not_pay_again(
    open_tab: OpenTab, shop: Shop
) -> None:
    page = await open_tab()
    await at_card(page, shop)
    await card(page)
    await press_pay(page)
    await page.wait_for_url(f"{shop.url}/confirm?*")
    await page.go_back(wait_until="commit")
    await page.wait_for_url(f"{shop.url}/confirm?*")
    await page.get_by_role("link", name="See the shop's side of it").click()
    assert (await last_order(page, shop))["capturedAmount"] == 0
