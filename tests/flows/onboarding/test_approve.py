"""A new merchant that must be approved: it is refused and held until every item is accepted, and again after a rejection."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from uuid import UUID, uuid4

import pytest

from cuota.core.merchant import Onboarding, may_sell
from cuota.core.onboarding.business import read_business
from cuota.core.onboarding.checklist import DECIDABLE, Item, ItemState
from cuota.core.onboarding.owner import read_owner
from cuota.core.onboarding.problem import BadOnboarding
from cuota.core.payout.bank_account import read_bank_details
from cuota.core.sandbox import TEST_ACCOUNTS, TEST_ROUTING
from cuota.db.onboarding import onboardings
from cuota.db.payout import holds
from cuota.flows.context import Context
from cuota.flows.merchant.manage_merchants import MerchantTerms, create_merchant
from cuota.flows.onboarding.change_business import change_business
from cuota.flows.onboarding.change_owners import add_owner, change_owner, remove_owner
from cuota.flows.onboarding.decide_item import decide_item
from cuota.flows.onboarding.keep_documents import remove_document
from cuota.flows.onboarding.read_checklist import read_checklist
from cuota.flows.onboarding.screen_names import screen_merchant
from cuota.flows.payout.change_bank_account import change_bank_account
from support.onboarding import (
    BUSINESS,
    OWNER,
    RISK,
    THEIRS,
    approve,
    decide,
    fill,
    new_merchant,
    requiring_approval,
    state_of,
    stored,
)
from support.own_service import Own


@pytest.fixture
def context(own: Own) -> Context:
    """A service whose settings require an approval."""
    return requiring_approval(own.context)


@pytest.fixture
async def new(context: Context) -> UUID:
    """A merchant that was created while an approval is required."""
    return await new_merchant(context)


async def actions(context: Context, merchant_id: UUID) -> list[str]:
    """The actions about the merchant in the operator's log, in order, without the actions of the merchant's people."""
    rows = await context.pool.fetch(
        "SELECT action FROM operator_log WHERE about = $1 ORDER BY entry_id", merchant_id
    )
    return [row["action"] for row in rows]


async def told(context: Context, merchant_id: UUID) -> list[str]:
    """The actions in the merchant's own audit log, in order."""
    rows = await context.pool.fetch(
        "SELECT action FROM audit_log WHERE merchant_id = $1 ORDER BY entry_id", merchant_id
    )
    return [row["action"] for row in rows]


async def test_without_the_setting_a_new_merchant_may_do_everything(own: Own) -> None:
    made = await create_merchant(own.context, MerchantTerms(name=f"Shop {uuid4().hex[:8]}"))
    found = await stored(own.context, made.merchant.merchant_id)
    assert (found.onboarding, may_sell(found, sandbox=False)) == (Onboarding.NONE, True)
    assert await holds.read(own.context.pool, found.merchant_id) == holds.Holds()


async def test_with_the_setting_a_new_merchant_is_refused_and_held_and_older_ones_are_not(
    own: Own, context: Context, new: UUID
) -> None:
    found = await stored(context, new)
    assert (found.onboarding, may_sell(found, sandbox=False)) == (Onboarding.OPEN, False)
    assert may_sell(found, sandbox=True)
    assert (await holds.read(context.pool, new)).unapproved_since is not None
    older = await stored(context, own.merchant.merchant_id)
    assert may_sell(older, sandbox=False)


async def test_accepting_the_last_item_approves_the_merchant_and_both_logs_say_so(
    context: Context, new: UUID
) -> None:
    await fill(context, new)
    assert await onboardings.count_to_check(context.pool) == (1, await _since(context, new))
    await screen_merchant(context, new)
    for item in sorted(DECIDABLE):
        assert (await stored(context, new)).onboarding is Onboarding.OPEN
        await decide(context, new, item)
    found = await stored(context, new)
    assert (found.onboarding, may_sell(found, sandbox=False)) == (Onboarding.APPROVED, True)
    assert await holds.read(context.pool, new) == holds.Holds()
    assert (await onboardings.count_to_check(context.pool))[0] == 0
    assert (await actions(context, new))[-2:] == ["onboarding.accept", "merchant.approve"]
    assert (await told(context, new))[-2:] == ["onboarding.accept", "merchant.approve"]


async def _since(context: Context, merchant_id: UUID) -> object:
    row = await context.pool.fetchrow(
        "SELECT to_check_since FROM merchant_onboarding WHERE merchant_id = $1", merchant_id
    )
    assert row is not None
    return row["to_check_since"]


async def test_a_screening_without_a_match_can_be_the_last_item(context: Context, new: UUID) -> None:
    await fill(context, new)
    for item in DECIDABLE:
        await decide(context, new, item)
    assert (await stored(context, new)).onboarding is Onboarding.OPEN
    await screen_merchant(context, new)
    assert (await stored(context, new)).onboarding is Onboarding.APPROVED
    (row,) = await context.pool.fetch(
        "SELECT actor, role FROM operator_log WHERE about = $1 AND action = 'merchant.approve'", new
    )
    assert (row["actor"], row["role"]) == ("the service, screening of names", "job")


@pytest.mark.parametrize("item", sorted(DECIDABLE))
async def test_a_rejection_ends_the_approval_and_a_new_acceptance_restores_it(
    context: Context, new: UUID, item: Item
) -> None:
    await approve(context, new)
    await decide(context, new, item, accepted=False, reason="not readable")
    found = await stored(context, new)
    assert (found.onboarding, may_sell(found, sandbox=False)) == (Onboarding.OPEN, False)
    assert (await holds.read(context.pool, new)).unapproved_since is not None
    assert (await actions(context, new))[-2:] == ["onboarding.reject", "merchant.unapprove"]
    decision = (await read_checklist(context, new)).checklist[item].decision
    assert decision is not None
    assert decision.reason == "not readable"
    await decide(context, new, item)
    assert (await stored(context, new)).onboarding is Onboarding.APPROVED


async def test_a_change_after_the_approval_must_be_checked_and_the_shop_stays_open(
    context: Context, new: UUID
) -> None:
    await approve(context, new)
    changed = read_business({**BUSINESS, "sells": "Tents only."})
    await change_business(context, new, THEIRS, changed, 1)
    assert await state_of(context, new, Item.BUSINESS) is ItemState.TO_CHECK
    # The names are the same, so the screening still counts.
    assert await state_of(context, new, Item.SCREENING) is ItemState.ACCEPTED
    assert (await stored(context, new)).onboarding is Onboarding.APPROVED
    assert (await onboardings.count_to_check(context.pool))[0] == 1


async def test_a_new_bank_account_must_be_checked(context: Context, new: UUID) -> None:
    await approve(context, new)
    await change_bank_account(context, new, read_bank_details(TEST_ROUTING, TEST_ACCOUNTS[1].number))
    assert await state_of(context, new, Item.BANK) is ItemState.TO_CHECK
    assert (await onboardings.count_to_check(context.pool))[0] == 1


async def test_a_merchant_that_existed_before_the_setting_can_be_approved_and_a_rejection_does_not_stop_it(
    own: Own,
) -> None:
    context, merchant_id = own.context, own.merchant.merchant_id
    await fill(context, merchant_id)
    await decide(context, merchant_id, Item.BUSINESS, accepted=False)
    assert (await stored(context, merchant_id)).onboarding is Onboarding.NONE
    await screen_merchant(context, merchant_id)
    for item in DECIDABLE:
        await decide(context, merchant_id, item)
    assert (await stored(context, merchant_id)).onboarding is Onboarding.APPROVED


async def test_nobody_can_accept_data_that_has_changed_in_the_meantime(context: Context, new: UUID) -> None:
    await fill(context, new)
    merchant = await stored(context, new)
    seen = (await read_checklist(context, new)).checklist[Item.BUSINESS].about
    await change_business(context, new, THEIRS, read_business({**BUSINESS, "sells": "Weapons."}), 1)
    with pytest.raises(BadOnboarding, match="has changed"):
        await decide_item(context, merchant, RISK, Item.BUSINESS, seen, "checked", accepted=True)
    assert await state_of(context, new, Item.BUSINESS) is ItemState.TO_CHECK
    assert (await actions(context, new))[-1] == "onboarding.accept.refused"


async def test_nobody_can_decide_about_a_missing_item(context: Context, new: UUID) -> None:
    with pytest.raises(BadOnboarding, match="Nothing was entered yet"):
        await decide(context, new, Item.BUSINESS)


async def test_the_same_decision_twice_is_one_decision(context: Context, new: UUID) -> None:
    await fill(context, new)
    await asyncio.gather(*(decide(context, new, Item.BUSINESS) for _ in range(4)))
    (row,) = await context.pool.fetch(
        "SELECT count(*) AS made FROM onboarding_decisions WHERE merchant_id = $1", new
    )
    assert row["made"] == 1
    for table, about in (("operator_log", "about"), ("audit_log", "merchant_id")):
        rows = await context.pool.fetch(f"SELECT action FROM {table} WHERE {about} = $1", new)
        assert [row["action"] for row in rows].count("onboarding.accept") == 1


async def test_an_acceptance_during_a_change_never_approves_data_that_the_operator_did_not_see(
    context: Context, new: UUID
) -> None:
    """Whichever comes first, the acceptance counts only for the data that the operator saw."""
    await fill(context, new)
    for version in range(1, 6):
        merchant = await stored(context, new)
        seen = (await read_checklist(context, new)).checklist[Item.BUSINESS].about
        changed = read_business({**BUSINESS, "sells": f"Number {version}."})
        await asyncio.gather(
            decide_item(context, merchant, RISK, Item.BUSINESS, seen, "checked", accepted=True),
            change_business(context, new, THEIRS, changed, version),
            return_exceptions=True,
        )
        assert await state_of(context, new, Item.BUSINESS) is ItemState.TO_CHECK


async def test_a_person_does_not_overwrite_a_business_that_another_person_has_changed(
    context: Context, new: UUID
) -> None:
    await fill(context, new)
    first, second = (read_business({**BUSINESS, "sells": text}) for text in ("Tents.", "Boots."))
    await change_business(context, new, THEIRS, first, 1)
    with pytest.raises(BadOnboarding, match="Somebody else has changed"):
        await change_business(context, new, THEIRS, second, 1)
    # The second click of the first person.
    await change_business(context, new, THEIRS, first, 1)
    facts = (await read_checklist(context, new)).facts
    assert (facts.business, facts.version) == (first, 2)


async def test_a_second_click_adds_no_second_owner(context: Context, new: UUID) -> None:
    person, owner_id = read_owner({**OWNER, "share": "30"}, context.now().date()), context.new_id()
    await asyncio.gather(*(add_owner(context, new, THEIRS, owner_id, person) for _ in range(3)))
    assert len((await read_checklist(context, new)).facts.owners) == 1


async def test_owners_that_are_added_at_the_same_moment_own_at_most_one_hundred_percent(
    context: Context, new: UUID
) -> None:
    person = read_owner({**OWNER, "share": "40"}, context.now().date())
    results = await asyncio.gather(
        *(add_owner(context, new, THEIRS, context.new_id(), person) for _ in range(4)), return_exceptions=True
    )
    assert [type(each) for each in results].count(BadOnboarding) == 2
    assert sum(each.details.share for each in (await read_checklist(context, new)).facts.owners) == 8000


async def test_a_person_who_is_no_longer_an_owner_is_stored_and_not_shown(
    context: Context, new: UUID
) -> None:
    await fill(context, new)
    (owner,) = (await read_checklist(context, new)).facts.owners
    for _ in range(2):
        await remove_owner(context, new, THEIRS, owner.owner_id)
    assert (await read_checklist(context, new)).facts.owners == []
    assert await context.pool.fetch("SELECT 1 FROM merchant_owners WHERE owner_id = $1", owner.owner_id)
    with pytest.raises(BadOnboarding, match="no longer an owner"):
        await change_owner(context, new, THEIRS, owner.owner_id, owner.details, 1)


async def test_the_merchant_cannot_remove_an_accepted_document(context: Context, new: UUID) -> None:
    await fill(context, new)
    (document,) = (await read_checklist(context, new)).facts.documents
    await decide(context, new, Item.DOCUMENTS)
    with pytest.raises(BadOnboarding, match="has accepted this document"):
        await remove_document(context, new, THEIRS, document.document_id)
    await remove_document(
        context, new, replace(THEIRS, actor=RISK, reason="wrong person"), document.document_id
    )
    assert await state_of(context, new, Item.DOCUMENTS) is ItemState.MISSING


async def test_no_name_date_of_birth_or_document_is_readable_in_the_database(
    context: Context, new: UUID
) -> None:
    await approve(context, new)
    tables = (
        "merchant_onboarding", "merchant_owners", "merchant_documents", "onboarding_decisions", "screening_findings",
        "audit_log", "operator_log",
    )  # fmt: skip
    for table in tables:
        column = "about" if table == "operator_log" else "merchant_id"
        rows = await context.pool.fetch(f"SELECT t::text AS row FROM {table} t WHERE {column} = $1", new)
        for row in rows:
            for secret in (
                "Rivera",
                "Northwind Outfitters",
                "1979-03-09",
                "3456789",
                "Registered in California",
            ):
                assert secret not in row["row"], (table, secret)
                assert secret.encode().hex() not in row["row"], (table, secret)
