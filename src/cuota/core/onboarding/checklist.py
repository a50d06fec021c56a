"""The onboarding checklist of five items. A merchant is approved when all five items are accepted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from cuota.core.onboarding.business import Business
from cuota.core.onboarding.document import MerchantDocument
from cuota.core.onboarding.owner import Owner
from cuota.core.onboarding.screening import FindingState, Screening
from cuota.core.payout.bank_account import BankAccount


class Item(StrEnum):
    """What the operator checks."""

    BUSINESS = "business"
    OWNERS = "owners"
    BANK = "bank"
    DOCUMENTS = "documents"
    SCREENING = "screening"


class ItemState(StrEnum):
    """The state of an item."""

    MISSING = "missing"
    TO_CHECK = "to_check"
    ACCEPTED = "accepted"
    REJECTED = "rejected"


ITEM_WORDS = {
    Item.BUSINESS: "Business",
    Item.OWNERS: "Owners",
    Item.BANK: "Bank account",
    Item.DOCUMENTS: "Documents",
    Item.SCREENING: "Screening",
}
STATE_WORDS = {
    ItemState.MISSING: ("Missing", "off"),
    ItemState.TO_CHECK: ("To check", "wait"),
    ItemState.ACCEPTED: ("Accepted", "done"),
    ItemState.REJECTED: ("Rejected", "bad"),
}
DECIDABLE = frozenset(Item) - {Item.SCREENING}
"""The items that the operator accepts or rejects. The state of the screening follows from the decisions about its possible matches."""


@dataclass(frozen=True, slots=True)
class ItemDecision:
    """A decision of the operator.

    `about` names exactly what the operator saw. After a change, the decision no longer counts.
    """

    item: Item
    accepted: bool
    about: str
    reason: str
    decider: str
    decided_at: datetime


@dataclass(frozen=True, slots=True)
class ChecklistItem:
    """An item with its state, and a text that says what is missing. `decision` is the last one, even if it no longer counts."""

    item: Item
    state: ItemState
    about: str
    missing: str = ""
    decision: ItemDecision | None = None


@dataclass(frozen=True, slots=True)
class OnboardingFacts:
    """All facts from which the checklist is made. `names` is the hash of the current names.

    `rejected_before` is the rejection of an earlier bank account with the same numbers as `account`.
    """

    business: Business | None
    version: int
    owners: Sequence[Owner]
    account: BankAccount | None
    documents: Sequence[MerchantDocument]
    names: bytes | None
    screening: Screening
    decisions: Mapping[Item, ItemDecision]
    rejected_before: ItemDecision | None = None


@dataclass(frozen=True, slots=True)
class Checklist:
    """The five items, in order."""

    items: tuple[ChecklistItem, ...]

    def __getitem__(self, item: Item) -> ChecklistItem:
        return next(each for each in self.items if each.item is item)

    @property
    def approved(self) -> bool:
        """Whether all items are accepted."""
        return all(each.state is ItemState.ACCEPTED for each in self.items)

    @property
    def rejected(self) -> bool:
        """Whether an item is rejected."""
        return any(each.state is ItemState.REJECTED for each in self.items)

    @property
    def to_check(self) -> bool:
        """Whether the operator has something to check."""
        return any(each.state is ItemState.TO_CHECK for each in self.items)


def checklist(facts: OnboardingFacts) -> Checklist:
    """Return the checklist."""
    return Checklist((*(_decided(each, facts) for each in Item if each in DECIDABLE), _screening(facts)))


def _decided(item: Item, facts: OnboardingFacts) -> ChecklistItem:
    about, missing = _about(item, facts), _missing(item, facts)
    decision = facts.decisions.get(item)
    if missing:
        state = ItemState.MISSING
    elif decision is None or decision.about != about:
        state = ItemState.TO_CHECK
    else:
        state = ItemState.ACCEPTED if decision.accepted else ItemState.REJECTED
    return ChecklistItem(item, state, about, missing, decision)


def _about(item: Item, facts: OnboardingFacts) -> str:
    """Return a text that identifies exactly the data that the operator looks at."""
    if item is Item.BUSINESS:
        return str(facts.version)
    if item is Item.OWNERS:
        return _joined((each.owner_id, each.version) for each in facts.owners)
    if item is Item.BANK:
        return str(facts.account.account_id) if facts.account else ""
    return _joined((each.document_id, 0) for each in facts.documents)


def _joined(parts: Iterable[tuple[UUID, int]]) -> str:
    return " ".join(sorted(f"{name.hex}.{version}" for name, version in parts))


def _missing(item: Item, facts: OnboardingFacts) -> str:
    if item is Item.BUSINESS and facts.business is None:
        return "Nothing was entered yet."
    if item is Item.OWNERS and not any(each.details.controlling for each in facts.owners):
        return (
            "Name at least one person who controls the business."
            if facts.owners
            else "No owner was named yet."
        )
    if item is Item.BANK and facts.account is None:
        return "There is no bank account yet. An owner or an admin adds it under Payouts, Bank account."
    if item is Item.DOCUMENTS and not facts.documents:
        return "No document was sent yet."
    return ""


def _screening(facts: OnboardingFacts) -> ChecklistItem:
    """The screening is accepted if all current names were screened and every possible match is cleared."""
    screening = facts.screening
    if facts.names is None:
        missing = "There is no name to screen before the business and its owners are known."
        return ChecklistItem(Item.SCREENING, ItemState.MISSING, "", missing)
    state = ItemState.ACCEPTED
    if screening.having(FindingState.CONFIRMED):
        state = ItemState.REJECTED
    elif screening.having(FindingState.OPEN) or screening.names != facts.names:
        state = ItemState.TO_CHECK
    return ChecklistItem(Item.SCREENING, state, facts.names.hex())
