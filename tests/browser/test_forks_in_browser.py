"""The forks of the sandbox in a real browser: on each screen, with and without script."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from cuota.commands.desk import sandbox_link
from cuota.core.desk.role import Role
from cuota.flows.merchant.manage_merchants import find_merchant
from cuota.flows.sandbox import fork_sandbox
from support.browser.screens import look_everywhere
from support.browser.tabs import OpenTab
from support.time.sandbox import Sandbox

pytestmark = pytest.mark.browser


async def test_a_developer_saves_a_fork_and_goes_back_to_it(open_tab: OpenTab, sandbox: Sandbox) -> None:
    await fork_sandbox.fork(sandbox.where, "f" * 31)
    context, page = sandbox.context, await open_tab()
    merchant = await find_merchant(context, str(sandbox.merchant.merchant_id))
    await page.goto(await sandbox_link(context, merchant, Role.OWNER))
    await page.get_by_role("button", name="Sign in").click()
    await page.get_by_role("link", name="Sandbox").click()
    await page.get_by_label("Name of the fork").fill("Not a name")
    await page.get_by_role("button", name="Save a fork").click()
    await expect(page.get_by_label("Name of the fork")).to_have_value("Not a name")
    await look_everywhere(page, "the sandbox with an error")
    await page.get_by_label("Name of the fork").fill("before-refund")
    await page.get_by_role("button", name="Save a fork").click()
    await expect(page.get_by_text("The fork is saved.")).to_be_visible()
    await look_everywhere(page, "the sandbox with two forks")
    await page.get_by_role("link", name="before-refund").click()
    await look_everywhere(page, "going back")
    await page.get_by_role("button", name="Go back to this fork").click()
    await expect(page.get_by_text("The sandbox is as it was")).to_be_visible()
