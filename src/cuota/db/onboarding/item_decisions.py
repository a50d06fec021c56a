"""The operator's decisions about the items of a checklist. Rows are never changed."""

from __future__ import annotations

from uuid import UUID

from cuota.core.onboarding.checklist import Item, ItemDecision
from cuota.db.session import Session

_LAST = """SELECT DISTINCT ON (item) item, accepted, about, reason, decider, decided_at FROM onboarding_decisions
    WHERE merchant_id = $1 ORDER BY item, decision_id DESC"""
_OF_ACCOUNTS = """SELECT DISTINCT ON (about) item, accepted, about, reason, decider, decided_at FROM onboarding_decisions
    WHERE merchant_id = $1 AND item = 'bank' ORDER BY about, decision_id DESC"""
_ADD = """INSERT INTO onboarding_decisions (merchant_id, decision_id, item, accepted, about, reason, decided_by, decider, decided_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)"""


async def read_last(session: Session, merchant_id: UUID) -> dict[Item, ItemDecision]:
    """Return the last decision about each item."""
    found = [ItemDecision(Item(item), *rest) for item, *rest in await session.fetch(_LAST, merchant_id)]
    return {each.item: each for each in found}


async def read_of_accounts(session: Session, merchant_id: UUID) -> list[ItemDecision]:
    """Return the last decision about each bank account, the latest one last."""
    found = [
        ItemDecision(Item(item), *rest) for item, *rest in await session.fetch(_OF_ACCOUNTS, merchant_id)
    ]
    return sorted(found, key=lambda each: each.decided_at)


async def add(
    session: Session, merchant_id: UUID, decision_id: UUID, decided: ItemDecision, decided_by: UUID | None
) -> None:
    """Add a decision."""
    await session.fetchrow(
        _ADD, merchant_id, decision_id, decided.item, decided.accepted, decided.about, decided.reason,
        decided_by, decided.decider, decided.decided_at,
    )  # fmt: skip
