"""Possible matches of names: listed, shown, cleared or confirmed with a reason, and screened again."""

from __future__ import annotations

from uuid import UUID

import pytest

from cuota.core.merchant import Onboarding
from cuota.core.onboarding.business import read_business
from cuota.core.onboarding.checklist import DECIDABLE, Item, ItemState
from cuota.core.onboarding.screening import FindingState
from cuota.core.operator.role import OperatorRole
from cuota.core.payout.bank_account import read_bank_details
from cuota.core.sandbox import TEST_ACCOUNTS, TEST_ROUTING
from cuota.db.onboarding import onboardings
from cuota.flows.context import Context
from cuota.flows.onboarding.change_business import change_business
from cuota.flows.onboarding.read_checklist import read_checklist
from cuota.flows.onboarding.screen_names import screen_merchant
from cuota.flows.payout.change_bank_account import change_bank_account
from support.makers import Merchant
from support.onboarding import BUSINESS, THEIRS, decide, fill, finding_of, stored
from support.pages.operator_staff import OperatorStaff

LISTED = "Viktor Morosoff"


@pytest.fixture
def context(merchant: Merchant) -> Context:
    return merchant.service.context


@pytest.fixture
async def suspect(merchant: Merchant, context: Context) -> UUID:
    """A merchant with an owner whose name is similar to a listed name. All other items are accepted."""
    merchant_id = merchant.merchant_id
    await onboardings.set_standing(context.pool, merchant_id, Onboarding.OPEN)
    await change_bank_account(context, merchant_id, read_bank_details(TEST_ROUTING, TEST_ACCOUNTS[0].number))
    await fill(context, merchant_id, owner=LISTED)
    assert await screen_merchant(context, merchant_id) is None
    for item in DECIDABLE:
        await decide(context, merchant_id, item)
    return merchant_id


def at(merchant_id: UUID, more: str = "") -> str:
    return f"/operator/merchants/{merchant_id}/onboarding{more}"


async def logged(context: Context, merchant_id: UUID) -> list[str]:
    rows = await context.pool.fetch(
        "SELECT action FROM operator_log WHERE about = $1 ORDER BY entry_id", merchant_id
    )
    return [row["action"] for row in rows]


async def test_a_possible_match_is_listed_and_a_person_who_decides_sees_both_names(
    operator: OperatorStaff, context: Context, suspect: UUID
) -> None:
    await operator.enter(OperatorRole.RISK)
    page = await operator.open(at(suspect, "/items/screening"))
    assert "To decide" in page.text
    assert LISTED not in page.text
    page = await operator.open(page.link("Viktor Morozov"))
    for text in (LISTED, "03/09/1979", "born 1961 in Zarovia", "S-1", "sandbox list"):
        assert text in page.text, text
    assert (await logged(context, suspect))[-1] == "screening.read"


async def test_clearing_a_match_approves_the_merchant_and_the_match_stays_cleared_after_the_next_screening(
    operator: OperatorStaff, context: Context, suspect: UUID
) -> None:
    finding = await finding_of(context, suspect)
    await operator.enter(OperatorRole.RISK)
    await operator.open(at(suspect, f"/findings/{finding.finding_id}"))
    assert (await operator.press(str(finding.finding_id), do="clear", reason="")).status == 400
    assert (await operator.press(str(finding.finding_id), do="", reason="older")).status == 400
    page = await operator.press(str(finding.finding_id), do="clear", reason="born in another year")
    assert "with it the merchant is approved" in page.text
    assert (await stored(context, suspect)).onboarding is Onboarding.APPROVED
    assert (await logged(context, suspect))[-2:] == ["screening.clear", "merchant.approve"]
    await operator.open(at(suspect, "/items/screening"))
    page = await operator.press("screening", reason="a new list")
    assert "The names were screened" in page.text
    after = await finding_of(context, suspect)
    assert (after.finding_id, after.state) == (finding.finding_id, FindingState.CLEARED)
    assert (await stored(context, suspect)).onboarding is Onboarding.APPROVED


async def test_a_confirmed_match_blocks_the_approval_until_it_is_cleared(
    operator: OperatorStaff, context: Context, suspect: UUID
) -> None:
    finding = await finding_of(context, suspect)
    await operator.enter(OperatorRole.RISK)
    await operator.open(at(suspect, f"/findings/{finding.finding_id}"))
    page = await operator.press(str(finding.finding_id), do="confirm", reason="the same passport")
    assert "The merchant cannot be approved" in page.text
    assert (await stored(context, suspect)).onboarding is Onboarding.OPEN
    checklist = (await read_checklist(context, suspect)).checklist
    assert checklist[Item.SCREENING].state is ItemState.REJECTED
    page = await operator.open(at(suspect, f"/findings/{finding.finding_id}"))
    assert "the same passport" in page.text
    await operator.press(str(finding.finding_id), do="clear", reason="the court decided")
    assert (await stored(context, suspect)).onboarding is Onboarding.APPROVED


async def test_a_confirmed_match_ends_an_approval(
    operator: OperatorStaff, context: Context, suspect: UUID
) -> None:
    finding = await finding_of(context, suspect)
    await operator.enter(OperatorRole.OWNER)
    for do in ("clear", "confirm"):
        await operator.open(at(suspect, f"/findings/{finding.finding_id}"))
        action, held = operator.page.form(str(finding.finding_id))
        for _ in range(2):
            # The second click changes nothing, and has no entry.
            form = {**held, "do": do, "reason": "looked at it"}
            assert (await operator.http.post(action, data=form)).status_code == 303
    assert (await stored(context, suspect)).onboarding is Onboarding.OPEN
    assert (await logged(context, suspect))[-2:] == ["screening.confirm", "merchant.unapprove"]
    assert (await logged(context, suspect)).count("screening.clear") == 1


async def test_the_merchants_own_log_does_not_mention_a_match(
    operator: OperatorStaff, context: Context, suspect: UUID
) -> None:
    finding = await finding_of(context, suspect)
    await operator.enter(OperatorRole.RISK)
    await operator.open(at(suspect, f"/findings/{finding.finding_id}"))
    await operator.press(str(finding.finding_id), do="confirm", reason="the same passport")
    rows = await context.pool.fetch("SELECT t::text AS row FROM audit_log t WHERE merchant_id = $1", suspect)
    assert rows
    assert not [row for row in rows if "screening" in row["row"] or "passport" in row["row"]]


async def test_a_match_of_a_past_name_is_not_found(
    operator: OperatorStaff, context: Context, suspect: UUID
) -> None:
    business = read_business({**BUSINESS, "legal_name": "Zarovia Export Co."})
    await change_business(context, suspect, THEIRS, business, 1)
    await screen_merchant(context, suspect)
    findings = (await read_checklist(context, suspect)).facts.screening.findings
    (company,) = [each for each in findings if each.entry == "S-6"]
    await change_business(context, suspect, THEIRS, read_business(BUSINESS), 2)
    await operator.enter(OperatorRole.RISK)
    page = await operator.open(at(suspect, f"/findings/{company.finding_id}"))
    assert page.status == 404


async def test_if_the_rail_does_not_answer_the_item_must_be_checked_and_the_page_says_so(
    operator: OperatorStaff, merchant: Merchant, context: Context
) -> None:
    await fill(context, merchant.merchant_id, owner="Silent Rail")
    await operator.enter(OperatorRole.RISK)
    await operator.open(at(merchant.merchant_id, "/items/screening"))
    page = await operator.press("screening", reason="first look")
    assert page.status == 400
    assert "does not answer" in page.text
    page = await operator.open(at(merchant.merchant_id, "/items/screening"))
    assert "The rail did not answer" in page.text
    checklist = (await read_checklist(context, merchant.merchant_id)).checklist
    assert checklist[Item.SCREENING].state is ItemState.TO_CHECK


async def test_nobody_can_accept_or_reject_the_whole_screening(
    operator: OperatorStaff, context: Context, suspect: UUID
) -> None:
    await operator.enter(OperatorRole.OWNER)
    page = await operator.open(at(suspect, "/items/screening"))
    csrf = page.form("screening")[1]["csrf"]
    answer = await operator.http.post(
        at(suspect, "/items/screening"), data={"csrf": csrf, "do": "accept", "reason": "r", "seen": "x"}
    )
    assert answer.status_code == 400
    assert "each possible match" in answer.text
    assert (await stored(context, suspect)).onboarding is Onboarding.OPEN
