"""Movements of money that a second person must approve."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from cuota.core.order.movement import MovementKind
from cuota.db.session import Session

_COLUMNS = """approval_id, order_id, kind, amount, reference, reason, asked_by, asker, asked_at, state, decider, decided_at
    FROM desk_approvals"""
_ADD = """INSERT INTO desk_approvals
    (merchant_id, approval_id, order_id, kind, amount, reference, reason, asked_by, asker, asked_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT DO NOTHING RETURNING approval_id"""
_ONE = f"SELECT {_COLUMNS} WHERE merchant_id = $1 AND approval_id = $2"
_BY_REFERENCE = f"SELECT {_COLUMNS} WHERE merchant_id = $1 AND reference = $2"
# Each part reads at most $2 rows, by its own index.
_NEWEST = f"""SELECT n.* FROM (
        (SELECT {_COLUMNS} WHERE merchant_id = $1 AND state = 'waiting' ORDER BY asked_at DESC LIMIT $2)
        UNION (SELECT {_COLUMNS} WHERE merchant_id = $1 ORDER BY approval_id DESC LIMIT $2)
    ) n ORDER BY n.state = 'waiting' DESC, n.approval_id DESC LIMIT $2"""
_WAITING = "SELECT count(*) AS waiting FROM desk_approvals WHERE merchant_id = $1 AND state = 'waiting'"
_DECIDE = """UPDATE desk_approvals SET state = $3, decided_by = $4, decider = $5, decided_at = $6
    WHERE merchant_id = $1 AND approval_id = $2 AND state = 'waiting' RETURNING 1"""
_REFUSED = """UPDATE desk_approvals SET state = 'rejected'
    WHERE merchant_id = $1 AND approval_id = $2 AND state = 'approved' RETURNING 1"""


@dataclass(frozen=True, slots=True)
class Approval:
    """A requested movement. The amount is in cents; `state` is waiting, approved or rejected."""

    approval_id: UUID
    order_id: UUID
    kind: MovementKind
    amount: int
    reference: str
    reason: str
    asked_by: UUID
    asker: str
    asked_at: datetime
    state: str = "waiting"
    decider: str | None = None
    decided_at: datetime | None = None


def _approval(row: Any) -> Approval:
    approval_id, order_id, kind, *rest = row
    return Approval(approval_id, order_id, MovementKind(kind), *rest)


async def add(session: Session, merchant_id: UUID, asked: Approval) -> bool:
    """Store a request for an approval. Return False if this movement was requested before."""
    row = await session.fetchrow(
        _ADD, merchant_id, asked.approval_id, asked.order_id, asked.kind, asked.amount, asked.reference, asked.reason,
        asked.asked_by, asked.asker, asked.asked_at,
    )  # fmt: skip
    return row is not None


async def read(session: Session, merchant_id: UUID, approval_id: UUID) -> Approval | None:
    """Return a request, or None."""
    row = await session.fetchrow(_ONE, merchant_id, approval_id)
    return None if row is None else _approval(row)


async def by_reference(session: Session, merchant_id: UUID, reference: str) -> Approval | None:
    """Return the request for the movement with this reference, in any state, or None."""
    row = await session.fetchrow(_BY_REFERENCE, merchant_id, reference)
    return None if row is None else _approval(row)


async def refused(session: Session, merchant_id: UUID, approval_id: UUID) -> None:
    """End an approval whose movement was refused, so that nobody can make the movement later."""
    await session.fetchrow(_REFUSED, merchant_id, approval_id)


async def newest(session: Session, merchant_id: UUID, limit: int) -> list[Approval]:
    """Return at most `limit` requests: first those that wait, then those that are decided; the newest first in each."""
    return [_approval(row) for row in await session.fetch(_NEWEST, merchant_id, limit)]


async def count_waiting(session: Session, merchant_id: UUID) -> int:
    """Return how many requests wait for a second person."""
    row = await session.fetchrow(_WAITING, merchant_id)
    return 0 if row is None else int(row["waiting"])


async def decide(
    session: Session,
    merchant_id: UUID,
    approval_id: UUID,
    state: str,
    person_id: UUID,
    decider: str,
    now: datetime,
) -> bool:
    """Approve or reject a request. Return False if it was decided before."""
    row = await session.fetchrow(_DECIDE, merchant_id, approval_id, state, person_id, decider, now)
    return row is not None
