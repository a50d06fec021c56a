"""The export of orders in a real browser: its progress, canceling it, a lost connection, and without script."""

from __future__ import annotations

import asyncio
import csv
import io
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.async_api import Page, expect

from cuota.commands.desk import sandbox_link
from cuota.core.desk.role import Role
from cuota.flows.merchant.manage_merchants import find_merchant
from cuota.web.pages.desk import export, payouts
from support.browser.screens import WIDE, look
from support.browser.tabs import OpenTab
from support.faults.proxy import Proxy
from support.makers import Merchant
from support.settlement_rows import Row, paid

pytestmark = pytest.mark.browser
ORDERS = 6


@pytest.fixture
async def net(merchant: Merchant) -> AsyncIterator[Proxy]:
    """The network between the browser and the service."""
    port = urlsplit(merchant.service.settings.public_url).port
    assert port is not None
    async with Proxy(port, 1, calm=True) as proxy:
        yield proxy


@pytest.fixture
async def exporting(
    open_tab: OpenTab, merchant: Merchant, net: Proxy, monkeypatch: pytest.MonkeyPatch
) -> Page:
    """The page of the export of six orders, each of which is a part of the file."""
    for number in range(ORDERS):
        await merchant.create(f"{10 + number}.00", merchantReference=f"W-{number}, \u00e9\u20ac")
    monkeypatch.setattr(export, "ORDERS_AT_ONCE", 1)
    return await open_export(open_tab, merchant, net.url)


async def open_export(open_tab: OpenTab, merchant: Merchant, url: str, **how: Any) -> Page:
    # A refused form and a lost connection are wanted here, and the browser logs them.
    page = await open_tab("400 |ERR_|Failed to fetch", viewport=WIDE, **how)
    held = await find_merchant(merchant.service.context, str(merchant.merchant_id))
    link = await sandbox_link(merchant.service.context, held, Role.FINANCE)
    await page.goto(link.replace(merchant.service.settings.public_url, url))
    await page.get_by_role("button", name="Sign in").click()
    await page.goto(f"{url}/desk/orders/export")
    await page.get_by_label("Reason").fill("report")
    return page


def slow_after(monkeypatch: pytest.MonkeyPatch, orders: int) -> None:
    """Let the service rest for a very long time after so many orders."""
    monkeypatch.setattr(export, "UNPACED", orders)
    monkeypatch.setattr(export, "REST", 1_000_000)


def references(text: str) -> list[str]:
    return [row["merchantReference"] for row in csv.DictReader(io.StringIO(text))]


EVERY = [f"W-{number}, \u00e9\u20ac" for number in reversed(range(ORDERS))]


async def press_and_save(page: Page, button: str) -> str:
    async with page.expect_download() as coming:
        await page.get_by_role("button", name=button).click()
    path = await (await coming.value).path()
    return await asyncio.to_thread(Path(path).read_text, "utf-8")


async def test_the_file_is_saved_and_the_page_says_how_many_orders_it_has(exporting: Page) -> None:
    assert references(await press_and_save(exporting, "Download the CSV file")) == EVERY
    await expect(exporting.get_by_role("status").last).to_be_attached()
    await expect(exporting.get_by_text(f"Done: {ORDERS} orders are in the file orders.csv.")).to_be_visible()
    await look(exporting, "a finished download")
    # Once more, with the same form.
    assert references(await press_and_save(exporting, "Download the CSV file")) == EVERY


async def test_without_script_the_browser_downloads_the_same_file(
    open_tab: OpenTab, merchant: Merchant
) -> None:
    await merchant.create("10.00", merchantReference="W-1")
    page = await open_export(
        open_tab, merchant, merchant.service.settings.public_url, java_script_enabled=False
    )
    assert references(await press_and_save(page, "Download the CSV file")) == ["W-1"]


async def test_a_download_shows_its_progress_and_is_canceled(
    exporting: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow_after(monkeypatch, 2)
    await exporting.get_by_role("button", name="Download the CSV file").click()
    await expect(exporting.get_by_text("orders so far. Keep this page open.")).to_be_visible()
    await expect(exporting.get_by_role("progressbar")).to_be_visible()
    await look(exporting, "a running download")
    await exporting.get_by_role("button", name="Cancel").click()
    await expect(exporting.get_by_text("Canceled. Nothing was saved.")).to_be_visible()
    await expect(exporting.get_by_role("progressbar")).to_be_hidden()


async def test_after_a_lost_connection_the_download_goes_on_and_each_order_is_there_once(
    exporting: Page, net: Proxy, merchant: Merchant, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow_after(monkeypatch, 2)
    await exporting.get_by_role("button", name="Download the CSV file").click()
    await expect(exporting.get_by_text("orders so far")).to_be_visible()
    net.cut()
    await expect(exporting.get_by_text("The connection was lost after")).to_be_visible()
    await look(exporting, "a lost download")
    # The network is still down: what has arrived stays.
    await exporting.context.set_offline(True)
    await exporting.get_by_role("button", name="Continue the download").click()
    await expect(exporting.get_by_role("button", name="Continue the download")).to_be_visible()
    await exporting.context.set_offline(False)
    monkeypatch.setattr(export, "REST", 0)
    assert references(await press_and_save(exporting, "Continue the download")) == EVERY
    rows = await merchant.service.context.pool.fetch(
        "SELECT subject FROM audit_log WHERE merchant_id = $1 AND action = 'orders.export' ORDER BY entry_id",
        merchant.merchant_id,
    )
    assert ["continued" in row["subject"] for row in rows] == [False, True]


async def test_a_form_that_is_refused_shows_its_error_and_works_then(exporting: Page) -> None:
    await exporting.get_by_label("Reason").fill(" ")
    await exporting.get_by_role("button", name="Download the CSV file").click()
    await expect(exporting.locator("#reason-error")).to_contain_text("Say why")
    await exporting.get_by_label("Reason").fill("report")
    assert references(await press_and_save(exporting, "Download the CSV file")) == EVERY


async def test_after_the_session_ended_the_page_says_so(exporting: Page, merchant: Merchant) -> None:
    await merchant.service.context.pool.execute(
        "DELETE FROM desk_sessions WHERE merchant_id = $1", merchant.merchant_id
    )
    await exporting.get_by_role("button", name="Download the CSV file").click()
    await expect(exporting.get_by_text("Your session has ended")).to_be_visible()


async def test_a_long_payout_shows_its_progress_and_a_short_one_is_a_plain_link(
    open_tab: OpenTab, merchant: Merchant, monkeypatch: pytest.MonkeyPatch
) -> None:
    payout_id = await paid(merchant, Row("capture", 100), Row("capture", 200))
    page = await open_export(open_tab, merchant, merchant.service.settings.public_url)
    address = f"{merchant.service.settings.public_url}/desk/payouts/{payout_id}"
    await page.goto(address)
    await expect(page.locator("[data-download]")).to_have_count(0)
    monkeypatch.setattr(payouts, "LONG", 1)
    await page.goto(address)
    async with page.expect_download() as coming:
        await page.get_by_role("link", name="Export all lines as CSV").click()
    assert "payout-" in (await coming.value).suggested_filename
    await expect(page.get_by_text("lines are in the file")).to_be_visible()
