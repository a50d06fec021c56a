"""The states of the items, and when a merchant is approved."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from uuid import UUID

import pytest

from cuota.core.onboarding.business import read_business
from cuota.core.onboarding.checklist import (
    DECIDABLE,
    Checklist,
    Item,
    ItemDecision,
    ItemState,
    OnboardingFacts,
    checklist,
)
from cuota.core.onboarding.document import DocumentKind, MerchantDocument
from cuota.core.onboarding.owner import Owner, OwnerDetails
from cuota.core.onboarding.screening import NEVER, Finding, FindingState, Screening, SubjectKind, retry_at
from cuota.core.payout.bank_account import BankAccount
from support.onboarding import BUSINESS

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)
ONE, TWO = UUID(int=1), UUID(int=2)
CLEAN = Screening(b"names", "sandbox", NOW, NOW, None)
FULL = OnboardingFacts(
    read_business(BUSINESS), 3, [Owner(ONE, 1, OwnerDetails("Jordan Rivera", date(1980, 5, 17), 6000, controlling=True))],
    BankAccount(ONE, "6789", NOW, NOW), [MerchantDocument(ONE, DocumentKind.TAX, "ein.pdf", "application/pdf", 10, "Ana", NOW)],
    b"names", CLEAN, {},
)  # fmt: skip
EMPTY = OnboardingFacts(None, 0, [], None, [], None, NEVER, {})


def decided(facts: OnboardingFacts, *rejected: Item) -> OnboardingFacts:
    """Decide about the current state of every item: accept all except the rejected items."""
    found = checklist(facts)
    decisions = {
        item: ItemDecision(item, item not in rejected, found[item].about, "why", "Ana", NOW)
        for item in DECIDABLE
    }
    return replace(facts, decisions=decisions)


def states(found: Checklist) -> dict[Item, ItemState]:
    return {each.item: each.state for each in found.items}


def finding(state: FindingState) -> Finding:
    return Finding(ONE, b"s", SubjectKind.OWNER, ONE, "list", "1", "V", "", 99, NOW, state, None, None, None)


def test_every_item_of_a_new_merchant_is_missing_and_says_what_is_missing() -> None:
    found = checklist(EMPTY)
    assert set(states(found).values()) == {ItemState.MISSING}
    assert all(each.missing for each in found.items)
    assert not found.to_check


def test_a_new_entry_must_be_checked() -> None:
    found = checklist(FULL)
    assert {each for each, state in states(found).items() if state is ItemState.TO_CHECK} == DECIDABLE
    assert found.to_check
    assert not found.approved


def test_a_merchant_is_approved_when_all_items_are_accepted() -> None:
    assert checklist(decided(FULL)).approved


@pytest.mark.parametrize("item", sorted(DECIDABLE))
def test_one_rejected_item_prevents_the_approval(item: Item) -> None:
    found = checklist(decided(FULL, item))
    assert found[item].state is ItemState.REJECTED
    assert (found.approved, found.rejected) == (False, True)


@pytest.mark.parametrize(
    ("changed", "item"),
    [
        (replace(FULL, version=4), Item.BUSINESS),
        (replace(FULL, owners=[replace(FULL.owners[0], version=2)]), Item.OWNERS),
        (replace(FULL, owners=[*FULL.owners, replace(FULL.owners[0], owner_id=TWO)]), Item.OWNERS),
        (replace(FULL, account=BankAccount(TWO, "6789", NOW, NOW)), Item.BANK),
        (
            replace(FULL, documents=[*FULL.documents, replace(FULL.documents[0], document_id=TWO)]),
            Item.DOCUMENTS,
        ),
        (replace(FULL, documents=[replace(FULL.documents[0], document_id=TWO)]), Item.DOCUMENTS),
    ],
)
def test_a_decision_no_longer_counts_after_its_item_has_changed(changed: OnboardingFacts, item: Item) -> None:
    found = checklist(replace(changed, decisions=decided(FULL, item).decisions))
    assert found[item].state is ItemState.TO_CHECK
    assert found[item].decision is not None


def test_owners_are_not_complete_if_nobody_controls_the_business() -> None:
    alone = Owner(ONE, 1, OwnerDetails("Jordan Rivera", date(1980, 5, 17), 6000, controlling=False))
    found = checklist(replace(FULL, owners=[alone]))[Item.OWNERS]
    assert found.state is ItemState.MISSING
    assert "controls the business" in found.missing


@pytest.mark.parametrize(
    ("screening", "state"),
    [
        (NEVER, ItemState.TO_CHECK),
        (replace(CLEAN, names=b"other names"), ItemState.TO_CHECK),
        (CLEAN, ItemState.ACCEPTED),
        (replace(CLEAN, findings=(finding(FindingState.OPEN),)), ItemState.TO_CHECK),
        (replace(CLEAN, findings=(finding(FindingState.CLEARED),)), ItemState.ACCEPTED),
        (replace(CLEAN, findings=(finding(FindingState.CLEARED), finding(FindingState.OPEN))), ItemState.TO_CHECK),
        (replace(CLEAN, findings=(finding(FindingState.OPEN), finding(FindingState.CONFIRMED))), ItemState.REJECTED),
        # If a rail does not answer later, its earlier results still count.
        (replace(CLEAN, problem="no answer"), ItemState.ACCEPTED),
    ],
)  # fmt: skip
def test_the_state_of_the_screening_follows_from_the_screened_names_and_the_decisions(
    screening: Screening, state: ItemState
) -> None:
    found = checklist(replace(decided(FULL), screening=screening))
    assert found[Item.SCREENING].state is state
    assert found.approved is (state is ItemState.ACCEPTED)


def test_a_rail_that_does_not_answer_is_called_again_after_a_minute_and_then_at_longer_intervals() -> None:
    waits = [retry_at(tries, NOW) - NOW for tries in (1, 2, 3, 7, 1000)]
    assert waits == [timedelta(minutes=minutes) for minutes in (1, 2, 4, 60, 60)]
