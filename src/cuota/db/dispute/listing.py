"""Reads a merchant's disputes in pages, newest first, and one dispute with details of its order.

Pages follow the dispute ids, which increase with time, so a new dispute does not shift the pages.
"""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from cuota.core.dispute.dispute import Dispute, DisputeStatus
from cuota.db.dispute.disputes import COLUMNS, dispute_of
from cuota.db.session import Session

NEWEST = UUID(int=2**128 - 1)
"""Above every id of a dispute."""

_PAYMENT = (
    """LEFT JOIN charges c ON c.merchant_id = $1 AND c.order_id = d.order_id AND c.charge_id = d.charge_id"""
)
OF_STATUS = "d.status = ANY ($3::text[])"
# The index disputes_going contains only these.
GOING = f"{OF_STATUS} AND d.status <> 'closed'"
_PAGE = f"""SELECT d.order_id, c.installment AS payment, {COLUMNS} FROM disputes d {_PAYMENT}
    WHERE d.merchant_id = $1 AND d.dispute_id < $2 AND {OF_STATUS} ORDER BY d.dispute_id DESC LIMIT $4"""
_PAGE_GOING = _PAGE.replace(OF_STATUS, GOING)
# A statement of its own: a plan for both would read all disputes of the merchant to find those of one order.
_PAGE_OF_ORDER = f"""WITH of_order AS MATERIALIZED (SELECT * FROM disputes WHERE merchant_id = $1 AND order_id = $5)
{_PAGE.replace("disputes d", "of_order d")}"""
_ONE = f"""SELECT d.order_id, n.reference AS merchant_reference, o.currency, m.reference AS refund_reference,
        c.installment AS payment, {COLUMNS}
    FROM disputes d {_PAYMENT}
        JOIN orders o ON o.merchant_id = $1 AND o.order_id = d.order_id
        JOIN order_details n ON n.merchant_id = $1 AND n.order_id = d.order_id
        LEFT JOIN movements m ON m.merchant_id = $1 AND m.order_id = d.order_id AND m.kind = 'refund'
            AND m.movement_id = d.movement_id
    WHERE d.merchant_id = $1 AND d.dispute_id = $2"""


@dataclass(frozen=True, slots=True)
class DisputeEntry:
    """A dispute and its order. `payment` is the number of the installment that a chargeback took back, or None."""

    order_id: UUID
    dispute: Dispute
    payment: int | None


@dataclass(frozen=True, slots=True)
class DisputeOfOrder:
    """A dispute with its order's reference and currency. `refund_reference` is the reference of a lost dispute's refund.

    `payment` is the number of the installment that a chargeback took back, or None.
    """

    order_id: UUID
    merchant_reference: str
    currency: str
    refund_reference: str | None
    dispute: Dispute
    payment: int | None


async def page(
    session: Session,
    merchant_id: UUID,
    below: UUID,
    statuses: tuple[DisputeStatus, ...],
    order_id: UUID | None,
    limit: int,
) -> list[DisputeEntry]:
    """Return at most `limit` disputes whose id is less than `below`, newest first.

    Without statuses, all statuses match. Without an order, all orders match.
    """
    names = [status.value for status in statuses or tuple(DisputeStatus)]
    if order_id is None:
        sql = _PAGE if DisputeStatus.CLOSED in names else _PAGE_GOING
        rows = await session.fetch(sql, merchant_id, below, names, limit)
    else:
        rows = await session.fetch(_PAGE_OF_ORDER, merchant_id, below, names, limit, order_id)
    return [DisputeEntry(row["order_id"], dispute_of(row), row["payment"]) for row in rows]


async def one(session: Session, merchant_id: UUID, dispute_id: UUID) -> DisputeOfOrder | None:
    """Return a dispute, or None if this merchant has none with this id."""
    row = await session.fetchrow(_ONE, merchant_id, dispute_id)
    if row is None:
        return None
    return DisputeOfOrder(
        row["order_id"],
        row["merchant_reference"],
        row["currency"],
        row["refund_reference"],
        dispute_of(row),
        row["payment"],
    )
