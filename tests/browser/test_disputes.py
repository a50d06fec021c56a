"""A consumer reports a problem in a real browser: with and without script, on a phone, with files of several megabytes."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import pytest
from playwright.async_api import Page, expect

from cuota.db.dispute import disputes
from support.browser.screens import look_everywhere
from support.browser.tabs import OpenTab
from support.evidence_files import large_jpeg
from support.makers import Merchant, Running, complete
from support.phones import phone_number

pytestmark = pytest.mark.browser
SCRIPTS = pytest.mark.parametrize("script", [True, False], ids=["with script", "without script"])


async def look(page: Page, name: str, *, script: bool) -> None:
    """Check the page. Axe is a script, so it cannot run in a browser without script."""
    if script:
        await look_everywhere(page, name)


async def enter_plan(page: Page, service: Running, merchant: Merchant, number: str) -> None:
    """Sign in and open the plan."""
    await page.goto(f"{service.settings.public_url}/account")
    await page.get_by_label("Mobile phone number").fill(number)
    await page.locator("main button.primary").click()
    await page.get_by_label("Code").fill("123456")
    await page.locator("main button.primary").click()
    await page.get_by_role("link", name=merchant.name).click()


@SCRIPTS
async def test_a_consumer_reports_a_problem_with_files_reads_its_state_and_withdraws_it(
    open_tab: OpenTab, service: Running, auto_merchant: Merchant, tmp_path: Path, *, script: bool
) -> None:
    number = phone_number()
    order = await auto_merchant.create("100.00")
    await complete(service, auto_merchant.merchant_id, order, "4242424242424242", phone=number)
    photo, note = tmp_path / "box.jpg", tmp_path / "note.txt"
    photo.write_bytes(large_jpeg(4 * 1024 * 1024))
    note.write_text("I waited three weeks.")
    page = await open_tab(java_script_enabled=script)
    await enter_plan(page, service, auto_merchant, number)
    await look(page, "plan", script=script)
    await page.get_by_role("link", name="Report a problem").click()
    await look(page, "report", script=script)
    await page.get_by_role("button", name="Send to").click()
    summary = page.get_by_role("group", name="Please check")
    await expect(summary).to_be_focused()
    await expect(summary.get_by_role("link")).to_have_count(2)
    await look(page, "report-wrong", script=script)
    await summary.get_by_role("link", name="Choose what went wrong").click()
    await expect(page.get_by_label("It did not arrive")).to_be_focused()
    await page.get_by_label("It did not arrive").check()
    await page.get_by_label("How much").fill("40.00")
    await page.get_by_label("What happened?").fill("Nothing came.")
    await page.get_by_label("Pictures or documents").set_input_files([photo, note])
    await page.get_by_role("button", name="Send to").click()
    await expect(page.get_by_role("heading", name="Your dispute")).to_be_visible()
    async with page.expect_download() as found_file:
        await page.get_by_role("link", name="box.jpg").click()
    download = await found_file.value
    assert download.suggested_filename == "box.jpg"
    arrived = tmp_path / "arrived.jpg"
    await download.save_as(arrived)
    assert arrived.stat().st_size == photo.stat().st_size
    await look(page, "dispute", script=script)
    await page.get_by_text("Withdraw the dispute").first.click()
    await page.get_by_role("button", name="Withdraw the dispute").click()
    await expect(page.get_by_text("You withdrew the dispute")).to_be_visible()
    await page.get_by_role("link", name="Back to your plan").click()
    await expect(page.get_by_role("heading", name="Problems with this order")).to_be_visible()
    await look(page, "plan-after", script=script)
    (found,) = await disputes.of_order(
        service.context.pool, auto_merchant.merchant_id, UUID(str(order["orderId"]))
    )
    assert (found.amount, found.outcome) == (4000, "withdrawn")


@SCRIPTS
async def test_a_consumer_reports_returned_goods_by_keyboard_and_the_next_payment_is_held(
    open_tab: OpenTab, service: Running, auto_merchant: Merchant, *, script: bool
) -> None:
    number = phone_number()
    order = await auto_merchant.create("100.00")
    await complete(service, auto_merchant.merchant_id, order, "4242424242424242", phone=number)
    page = await open_tab(java_script_enabled=script)
    await enter_plan(page, service, auto_merchant, number)
    await page.get_by_role("link", name="I sent it back").focus()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("heading", name="I sent it back")).to_be_visible()
    await look(page, "return", script=script)
    await page.get_by_label("Who carries").focus()
    await page.keyboard.type("UPS")
    await page.keyboard.press("Enter")
    await expect(page.get_by_label("Tracking number")).to_be_focused()
    await expect(page.get_by_label("Who carries")).to_have_value("UPS")
    await page.keyboard.type("1Z999")
    await page.keyboard.press("Enter")
    await expect(page.get_by_text("You sent it back with UPS, number 1Z999")).to_be_visible()
    await expect(page.get_by_text("I sent it back", exact=True)).to_have_count(0)
    await look(page, "plan-returned", script=script)
