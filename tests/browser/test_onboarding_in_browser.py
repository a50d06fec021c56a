"""Onboarding in a real browser: the merchant's pages and the operator's, on a phone and wide, light and dark, filled in."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from cuota.commands.desk import operator_sandbox_link, sandbox_link
from cuota.core.desk.role import Role
from cuota.core.merchant import Onboarding
from cuota.core.onboarding.checklist import Item
from cuota.core.onboarding.owner import read_owner
from cuota.core.operator.role import OperatorRole
from cuota.db.onboarding import onboardings
from cuota.flows.onboarding.change_owners import add_owner
from cuota.flows.onboarding.read_checklist import read_checklist
from cuota.flows.onboarding.screen_names import screen_merchant
from support.browser.screens import look_everywhere
from support.browser.tabs import OpenTab
from support.makers import Merchant
from support.onboarding import OWNER, THEIRS, decide, fill, stored

pytestmark = pytest.mark.browser
LONG = "Bartholomew" * 4


async def test_every_page_of_a_filled_checklist_fits_and_breaks_no_rule_of_axe(
    open_tab: OpenTab, merchant: Merchant
) -> None:
    context, merchant_id = merchant.service.context, merchant.merchant_id
    await onboardings.set_standing(context.pool, merchant_id, Onboarding.OPEN)
    await fill(context, merchant_id, business=f"{LONG} {LONG} LLC", owner=f"{LONG} {LONG}")
    suspect = read_owner({**OWNER, "name": "Viktor Morosoff", "share": "40"}, context.now().date())
    await add_owner(context, merchant_id, THEIRS, context.new_id(), suspect)
    await screen_merchant(context, merchant_id)
    await decide(context, merchant_id, Item.DOCUMENTS, accepted=False, reason="W" * 400)
    facts = (await read_checklist(context, merchant_id)).facts
    owner, document = facts.owners[0].owner_id, facts.documents[0].document_id
    base, page = merchant.service.settings.public_url, await open_tab()
    shared = ["", "/business", "/owners", f"/owners/{owner}", "/documents", f"/documents/{document}/remove"]
    await page.goto(await sandbox_link(context, await stored(context, merchant_id), Role.OWNER))
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.get_by_text("Your account is not approved yet.")).to_be_visible()
    for path in shared:
        await page.goto(f"{base}/desk/onboarding{path}")
        await look_everywhere(page, f"the merchant's {path}")
    await page.goto(await operator_sandbox_link(context, OperatorRole.OWNER))
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("What waits")
    root = f"/operator/merchants/{merchant_id}"
    finding = (await read_checklist(context, merchant_id)).facts.screening.findings[0]
    items = [f"/onboarding/items/{item}" for item in Item]
    for path in (
        *(f"/onboarding{each}" for each in shared), *items, f"/onboarding/findings/{finding.finding_id}", "/suspension", "",
    ):  # fmt: skip
        await page.goto(base + root + path)
        await look_everywhere(page, f"the operator's {path}")
    for query in ("", "?state=check", "?state=onboarding", "?q=nobody"):
        await page.goto(f"{base}/operator/merchants{query}")
        await look_everywhere(page, f"the list of merchants {query}")
