"""What the operator sees of disputes: a list over all merchants."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from cuota.core.dispute.dispute import Dispute, DisputeStatus
from cuota.db.dispute.disputes import COLUMNS, dispute_of
from cuota.db.session import Session

# The newest first. A null argument means all.
_DISPUTES = f"""SELECT d.merchant_id, m.name, d.order_id, o.currency, {COLUMNS}
    FROM disputes d JOIN orders o ON o.merchant_id = d.merchant_id AND o.order_id = d.order_id
        JOIN merchants m ON m.merchant_id = d.merchant_id
    WHERE ($1::uuid IS NULL OR d.merchant_id = $1) AND ($2::text IS NULL OR d.status = $2)
    ORDER BY d.opened_at DESC, d.dispute_id DESC LIMIT $3"""


@dataclass(frozen=True, slots=True)
class ListedDispute:
    """A dispute in the operator's list."""

    merchant_id: UUID
    merchant: str
    order_id: UUID
    currency: str
    dispute: Dispute


async def listed(
    session: Session, merchant_id: UUID | None, status: DisputeStatus | None, limit: int
) -> list[ListedDispute]:
    """Return the newest disputes, of one merchant or of all, with one status or with any."""
    rows = await session.fetch(_DISPUTES, merchant_id, status, limit)
    return [
        ListedDispute(row["merchant_id"], row["name"], row["order_id"], row["currency"], dispute_of(row))
        for row in rows
    ]
