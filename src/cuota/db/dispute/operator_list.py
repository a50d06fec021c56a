"""Reads the operator's list of disputes over all merchants."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from cuota.core.dispute.dispute import Dispute, DisputeStatus
from cuota.db.dispute.disputes import COLUMNS, dispute_of
from cuota.db.pool import Row
from cuota.db.position import BEHIND_ALL, Position
from cuota.db.session import Session

_SHOWN = f"d.merchant_id, m.name, d.order_id, o.currency, {COLUMNS}"
_JOINED = """FROM disputes d JOIN orders o ON o.merchant_id = d.merchant_id AND o.order_id = d.order_id
        JOIN merchants m ON m.merchant_id = d.merchant_id"""
# The newest disputes come first. A status that is null matches all. $3 and $4 are the last dispute of the previous page.
_DISPUTES = f"""SELECT {_SHOWN} {_JOINED} WHERE ($1::text IS NULL OR d.status = $1) AND (d.opened_at, d.dispute_id) < ($3, $4)
    ORDER BY d.opened_at DESC, d.dispute_id DESC LIMIT $2"""
# A statement of its own: a plan for both would read the disputes of all merchants to find those of one. The ids increase with time.
_OF_MERCHANT = f"""SELECT {_SHOWN} {_JOINED}
    WHERE d.merchant_id = $1 AND o.merchant_id = $1 AND ($2::text IS NULL OR d.status = $2) ORDER BY d.dispute_id DESC LIMIT $3"""
# The oldest disputes come first, because they have waited longest. Chargebacks are left out, because the card network
# decides them. The index disputes_to_decide contains only these disputes.
_TO_DECIDE = f"""SELECT {_SHOWN} {_JOINED}
    WHERE d.kind = 'dispute' AND d.status IN ('under_review', 'appealed')
        AND ($2::timestamptz IS NULL OR (d.opened_at, d.dispute_id) > ($2, $3::uuid))
    ORDER BY d.opened_at, d.dispute_id LIMIT $1"""


@dataclass(frozen=True, slots=True)
class ListedDispute:
    """A dispute in the operator's list."""

    merchant_id: UUID
    merchant: str
    order_id: UUID
    currency: str
    dispute: Dispute


async def listed(
    session: Session,
    status: DisputeStatus | None,
    limit: int,
    after: Position | None = None,
) -> list[ListedDispute]:
    """Return the newest disputes of all merchants after the position `after`, with one status or any."""
    return _listed(await session.fetch(_DISPUTES, status, limit, *(after or BEHIND_ALL)))


async def listed_of(
    session: Session, merchant_id: UUID, status: DisputeStatus | None, limit: int
) -> list[ListedDispute]:
    """Return the newest disputes of a merchant, with one status or any."""
    return _listed(await session.fetch(_OF_MERCHANT, merchant_id, status, limit))


async def to_decide(session: Session, limit: int, after: Position | None = None) -> list[ListedDispute]:
    """Return the disputes that wait for the operator, the oldest first."""
    return _listed(await session.fetch(_TO_DECIDE, limit, *(after or (None, None))))


def _listed(rows: list[Row]) -> list[ListedDispute]:
    return [
        ListedDispute(row["merchant_id"], row["name"], row["order_id"], row["currency"], dispute_of(row))
        for row in rows
    ]
