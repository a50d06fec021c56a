"""What the opening of each chargeback of an order fixed for ever: its payment, and the amount that it released."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from cuota.db.session import Session

# The cause of a later release is another id: the refund's, or the dispute's `release_id`.
_OF_ORDER = """SELECT d.dispute_id, c.installment AS payment, (SELECT coalesce(sum(t.amount), 0)::bigint FROM transfers t
        WHERE t.merchant_id = $1 AND t.order_id = $2 AND t.cause = d.dispute_id AND t.posting = 'dispute_released') AS released
    FROM disputes d JOIN charges c ON c.merchant_id = $1 AND c.order_id = $2 AND c.charge_id = d.charge_id
    WHERE d.merchant_id = $1 AND d.order_id = $2"""


@dataclass(frozen=True, slots=True)
class OpenedChargeback:
    """`payment` is the number of the installment that the card's bank took back.

    `released` are the cents of the consumer's own dispute that the opening released.
    """

    payment: int
    released: int


async def of_order(session: Session, merchant_id: UUID, order_id: UUID) -> dict[UUID, OpenedChargeback]:
    """Return the chargebacks of an order by the id of the dispute, closed ones included."""
    rows = await session.fetch(_OF_ORDER, merchant_id, order_id)
    return {row["dispute_id"]: OpenedChargeback(row["payment"], row["released"]) for row in rows}
