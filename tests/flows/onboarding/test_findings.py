"""A person decides about each possible match of a name. The decision counts as long as the name and the entry stay the same."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from uuid import UUID

import pytest

from cuota.core.merchant import Onboarding
from cuota.core.onboarding.checklist import DECIDABLE, Item, ItemState
from cuota.core.onboarding.owner import read_owner
from cuota.core.onboarding.problem import BadOnboarding
from cuota.core.onboarding.screening import FindingState
from cuota.flows.context import Context
from cuota.flows.onboarding.change_owners import add_owner, change_owner, remove_owner
from cuota.flows.onboarding.decide_item import decide_finding
from cuota.flows.onboarding.read_checklist import read_checklist
from cuota.flows.onboarding.screen_names import screen_due_names, screen_merchant
from cuota.rails.screening.protocol import ScreeningMatch
from support.onboarding import (
    OWNER,
    RISK,
    THEIRS,
    TestRail,
    approve,
    decide,
    fill,
    finding_of,
    state_of,
    stored,
)

MATCH = ScreeningMatch("list", "7", "Jordan Riviera", 91, "born 1955")


async def decided(
    context: Context, merchant_id: UUID, how: FindingState, reason: str = "another year of birth"
) -> None:
    merchant, one = await stored(context, merchant_id), await finding_of(context, merchant_id)
    await decide_finding(context, merchant, RISK, one.finding_id, how, reason)


async def test_a_possible_match_waits_for_a_person_and_a_cleared_one_stays_cleared(
    context: Context, merchant_id: UUID, rail: TestRail
) -> None:
    rail.found["Jordan Rivera"] = [MATCH]
    await fill(context, merchant_id)
    await screen_due_names(context)
    one = await finding_of(context, merchant_id)
    assert (one.state, one.listed_name, one.score) == (FindingState.OPEN, "Jordan Riviera", 91)
    assert await state_of(context, merchant_id, Item.SCREENING) is ItemState.TO_CHECK
    await decided(context, merchant_id, FindingState.CLEARED)
    assert await state_of(context, merchant_id, Item.SCREENING) is ItemState.ACCEPTED
    await screen_merchant(context, merchant_id)
    again = await finding_of(context, merchant_id)
    assert (again.state, again.reason, again.decider) == (
        FindingState.CLEARED,
        "another year of birth",
        "command line, user risk",
    )


async def test_another_entry_of_the_list_is_another_possible_match(
    context: Context, merchant_id: UUID, rail: TestRail
) -> None:
    rail.found["Jordan Rivera"] = [MATCH]
    await fill(context, merchant_id)
    await screen_due_names(context)
    await decided(context, merchant_id, FindingState.CLEARED)
    rail.found["Jordan Rivera"] = [MATCH, replace(MATCH, entry="8")]
    await screen_merchant(context, merchant_id)
    assert await state_of(context, merchant_id, Item.SCREENING) is ItemState.TO_CHECK


async def test_a_decision_about_one_name_does_not_count_for_another_name(
    context: Context, merchant_id: UUID, rail: TestRail
) -> None:
    rail.found = {"Jordan Rivera": [MATCH], "Jordan Riviera": [MATCH]}
    await fill(context, merchant_id)
    await screen_due_names(context)
    await decided(context, merchant_id, FindingState.CLEARED)
    (owner,) = (await read_checklist(context, merchant_id)).facts.owners
    renamed = read_owner({**OWNER, "name": "Jordan Riviera"}, context.now().date())
    await change_owner(context, merchant_id, THEIRS, owner.owner_id, renamed, 1)
    await screen_due_names(context)
    one = await finding_of(context, merchant_id)
    assert one.state is FindingState.OPEN
    with pytest.raises(BadOnboarding):
        await decide_finding(
            context, await stored(context, merchant_id), RISK, UUID(int=0), FindingState.CLEARED, "x"
        )


async def test_a_confirmed_match_blocks_the_approval_until_it_is_cleared(
    context: Context, merchant_id: UUID, rail: TestRail
) -> None:
    rail.found["Jordan Rivera"] = [MATCH]
    await fill(context, merchant_id)
    await screen_due_names(context)
    await decided(context, merchant_id, FindingState.CONFIRMED)
    for item in DECIDABLE:
        await decide(context, merchant_id, item)
    assert (await stored(context, merchant_id)).onboarding is Onboarding.NONE
    await decided(context, merchant_id, FindingState.CLEARED, "it was a mistake")
    assert (await stored(context, merchant_id)).onboarding is Onboarding.APPROVED


async def test_a_match_that_is_found_later_ends_an_approval_only_when_a_person_confirms_it(
    context: Context, merchant_id: UUID, rail: TestRail
) -> None:
    await approve(context, merchant_id)
    rail.found["Jordan Rivera"] = [MATCH]
    await screen_merchant(context, merchant_id)
    assert (await stored(context, merchant_id)).onboarding is Onboarding.APPROVED
    assert await state_of(context, merchant_id, Item.SCREENING) is ItemState.TO_CHECK
    await decided(context, merchant_id, FindingState.CONFIRMED)
    assert (await stored(context, merchant_id)).onboarding is Onboarding.OPEN


async def test_the_merchants_audit_log_has_no_entry_about_a_finding(
    context: Context, merchant_id: UUID, rail: TestRail
) -> None:
    rail.found["Jordan Rivera"] = [MATCH]
    await fill(context, merchant_id)
    await screen_due_names(context)
    await decided(context, merchant_id, FindingState.CONFIRMED)
    rows = await context.pool.fetch("SELECT action FROM audit_log WHERE merchant_id = $1", merchant_id)
    assert not [row["action"] for row in rows if row["action"].startswith("screening")]
    rows = await context.pool.fetch("SELECT action FROM operator_log WHERE about = $1", merchant_id)
    assert "screening.confirm" in [row["action"] for row in rows]


async def test_if_two_people_decide_at_once_only_one_decision_is_made(
    context: Context, merchant_id: UUID, rail: TestRail
) -> None:
    rail.found["Jordan Rivera"] = [MATCH]
    await fill(context, merchant_id)
    await screen_due_names(context)
    merchant, one = await stored(context, merchant_id), await finding_of(context, merchant_id)
    await asyncio.gather(
        *(
            decide_finding(context, merchant, RISK, one.finding_id, FindingState.CLEARED, reason)
            for reason in ("first", "second")
        )
    )
    assert (await finding_of(context, merchant_id)).reason in {"first", "second"}


async def test_a_merchant_that_removes_a_confirmed_name_is_not_approved_before_a_person_clears_the_match(
    context: Context, merchant_id: UUID, rail: TestRail
) -> None:
    rail.found["Viktor Morozov"] = [MATCH]
    await approve(context, merchant_id)
    owner_id = context.new_id()
    details = read_owner({**OWNER, "name": "Viktor Morozov", "share": "40"}, context.now().date())
    await add_owner(context, merchant_id, THEIRS, owner_id, details)
    await screen_merchant(context, merchant_id)
    await decided(context, merchant_id, FindingState.CONFIRMED, "it is him")
    assert (await stored(context, merchant_id)).onboarding is Onboarding.OPEN
    await remove_owner(context, merchant_id, THEIRS, owner_id)
    await screen_merchant(context, merchant_id)
    assert (await stored(context, merchant_id)).onboarding is Onboarding.OPEN
    assert await state_of(context, merchant_id, Item.SCREENING) is ItemState.REJECTED
    await decided(context, merchant_id, FindingState.CLEARED, "he sold his share, see the contract")
    assert (await stored(context, merchant_id)).onboarding is Onboarding.APPROVED
