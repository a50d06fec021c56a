"""Signing in at the company's provider in a real browser, and the page of the system with figures."""

from __future__ import annotations

import random
import secrets
import socket
from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import timedelta
from uuid import uuid4

import pytest
from playwright.async_api import Page, expect

from cuota.commands.desk import operator_sandbox_link
from cuota.config import Settings
from cuota.core.operator.provider import ProviderRules
from cuota.core.operator.role import OperatorRole
from cuota.core.operator.traffic import BUCKETS, Traffic, TrafficTotals
from cuota.db.operator import minutes
from cuota.db.operator.minutes import Minute, Process
from cuota.flows.context import utc_now
from cuota.flows.operator.change_operators import invite_operator
from cuota.flows.operator.log_action import OperatorActor
from support.browser.screens import look_everywhere
from support.browser.tabs import OpenTab
from support.db.template import Template
from support.identity.company import NAME
from support.identity.real_provider import RealProvider, opened_provider
from support.makers import Running
from support.running import running

pytestmark = pytest.mark.browser
TWO = frozenset({"amr=mfa"})


@pytest.fixture(scope="module")
async def provider(settings: Settings) -> AsyncIterator[tuple[RealProvider, str]]:
    """A provider, and the address of the service that it knows."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{probe.getsockname()[1]}"
    async with opened_provider(address) as opened:
        yield opened, address


@pytest.fixture(scope="module")
async def company(
    settings: Settings, template: Template, provider: tuple[RealProvider, str]
) -> AsyncIterator[Running]:
    """A service whose people sign in at the provider, which proves a second factor."""
    given = replace(
        settings,
        public_url=provider[1],
        provider=provider[0].settings(),
        provider_rules=ProviderRules(NAME, two_factors=TWO),
    )
    async with running(given, dict(template.shared)) as started:
        yield started


async def employee(company: Running, provider: RealProvider, *amr: str) -> str:
    """Invite a person with an account at the provider. Return the account."""
    name = f"ana-{secrets.token_hex(4)}"
    await invite_operator(
        company.context,
        OperatorActor(None),
        "Ana Silva",
        f"{name}@company.example",
        OperatorRole.OWNER,
        "new",
        mail=False,
    )
    return await provider.account(name, f"{name}@company.example", amr=amr)


async def go_there(page: Page, company: Running, account: str) -> None:
    await page.goto(f"{company.settings.public_url}/operator/sign-in")
    await page.get_by_role("link", name=f"Sign in with {NAME}").click()
    await page.get_by_label("Account").fill(account)
    await page.get_by_role("button", name="Sign in").click()


@pytest.mark.parametrize("script", [True, False], ids=["with script", "without script"])
async def test_a_person_signs_in_at_the_provider_and_signs_out(
    open_tab: OpenTab, company: Running, provider: tuple[RealProvider, str], *, script: bool
) -> None:
    page = await open_tab(java_script_enabled=script)
    await go_there(page, company, await employee(company, provider[0], "mfa"))
    await expect(page.get_by_role("heading", level=1)).to_have_text("What waits")
    await page.get_by_role("button", name="Sign out").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("Sign in")


async def test_a_fresh_code_at_the_provider_in_another_tab_loses_nothing_that_was_typed(
    open_tab: OpenTab, company: Running, provider: tuple[RealProvider, str]
) -> None:
    page = await open_tab()
    account = await employee(company, provider[0], "mfa")
    await go_there(page, company, account)
    await expect(page.get_by_role("heading", level=1)).to_have_text("What waits")
    await company.context.pool.execute(
        "UPDATE operator_sessions SET proved_at = now() - interval '6 minutes'"
    )
    await page.goto(f"{company.settings.public_url}/operator/team")
    await page.get_by_label("Name").fill("Bo Lindqvist")
    await page.get_by_label("E-mail").fill(f"bo-{account}@company.example")
    await page.get_by_label("Reason").fill("new colleague")
    async with page.expect_popup() as opened:
        await page.get_by_role("link", name=f"confirm at {NAME}").click()
    there = await opened.value
    await there.get_by_label("Account").fill(account)
    await there.get_by_role("button", name="Sign in").click()
    await expect(there.get_by_role("heading", level=1)).to_have_text("Confirmed")
    await there.close()
    await page.get_by_role("button", name="Invite").click()
    await expect(page.get_by_role("status").first).to_contain_text("The invitation is on its way")


async def reports(company: Running) -> None:
    """Write an hour of reports of two processes, with a slow and a failing part."""
    now, dice = utc_now().replace(second=3), random.Random(7)
    processes = [
        Process(uuid4(), f"pay-{at}.internal", 4000 + at, "0.1.0", now - timedelta(days=2)) for at in (1, 2)
    ]
    for process in processes:
        for back in range(60):
            count = 300 + dice.randrange(200)
            fast = tuple([0, 0, 40, count - 50, 10] + [0] * (BUCKETS - 5))
            slow = tuple([0] * 8 + [20, 9, 3] + [0] * (BUCKETS - 11))
            groups = {
                "Merchant API": Traffic(count, 0, fast),
                "Checkout": Traffic(32, 1, slow),
                "Health checks and metrics": Traffic(12, 0, (12, *[0] * (BUCKETS - 1))),
            }
            at = now - timedelta(minutes=back)
            totals = TrafficTotals(groups, 5 if back == 2 else 0)
            await minutes.add(company.context.pool, Minute(at, process, 60.0, 187_000_000, totals))


async def test_the_pages_fit_the_screen_and_break_no_rule_of_axe(open_tab: OpenTab, company: Running) -> None:
    await reports(company)
    page, base = await open_tab(), company.settings.public_url
    await page.goto(f"{base}/operator/sign-in")
    await look_everywhere(page, "sign-in")
    await page.goto(f"{base}/operator/provider/return?state=x")
    await look_everywhere(page, "refused")
    await page.goto(await operator_sandbox_link(company.context, OperatorRole.OWNER))
    await page.get_by_role("button", name="Sign in").click()
    await page.goto(f"{base}/operator/system")
    await page.locator("summary").click()
    await expect(page.get_by_role("img")).to_have_count(2)
    await look_everywhere(page, "system")
    await page.goto(f"{base}/operator/me")
    await look_everywhere(page, "person")
