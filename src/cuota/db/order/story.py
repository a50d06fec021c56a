"""An order's story for whoever asks about it: what happened, its plan, and who paid what."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from uuid import UUID

from cuota.core.installment import Installment
from cuota.core.order.order import Order
from cuota.db.order.columns import MONEY, PLAN, order_of, plan_of
from cuota.db.session import Session

MOST_FOUND = 50
_FIND = """SELECT d.merchant_id, d.order_id, m.name FROM order_details d JOIN merchants m USING (merchant_id)
    WHERE d.reference = $1 ORDER BY m.name, d.order_id LIMIT $2"""
_READ = f"""
SELECT {MONEY}, {PLAN}, m.name AS merchant, d.reference, p.first_day, p.time_zone, p.agreed_at,
    ARRAY(SELECT ROW(e.created_at, e.type, e.amount, e.success, e.message) FROM events e
        WHERE e.merchant_id = o.merchant_id AND e.order_id = o.order_id ORDER BY e.sequence) AS told,
    ARRAY(SELECT ROW(c.charge_id, c.installment, c.amount, c.card_brand, c.card_last4, c.state, c.reason, c.created_at)
        FROM charges c WHERE c.merchant_id = o.merchant_id AND c.order_id = o.order_id ORDER BY c.created_at) AS charged,
    (SELECT s.additional::text FROM sdk_checkouts s WHERE s.merchant_id = o.merchant_id AND s.order_id = o.order_id)
        AS additional,
    (SELECT t.day FROM messages t WHERE t.merchant_id = o.merchant_id AND t.order_id = o.order_id AND t.kind = 'declined'
        LIMIT 1) AS declined_on
FROM orders o JOIN merchants m USING (merchant_id) JOIN order_details d USING (merchant_id, order_id)
    LEFT JOIN plans p USING (merchant_id, order_id)
WHERE o.merchant_id = $1 AND o.order_id = $2
"""


@dataclass(frozen=True, slots=True)
class StoryEvent:
    """An event. Cents."""

    at: datetime
    type: str
    amount: int
    success: bool
    message: str | None


@dataclass(frozen=True, slots=True)
class Charged:
    """A card that was asked for an installment. Cents."""

    charge_id: UUID
    installment: int
    amount: int
    brand: str
    last4: str
    state: str
    reason: str | None
    at: datetime


@dataclass(frozen=True, slots=True)
class Story:
    """All of one order. `first_day` and `agreed_at` are None where nobody agreed to a plan.

    `additional` (JSON text) is what the merchant said of its customer, as it was sent. `declined_on` is the consumer's
    own day in the letter about a declined order, None where there is none.
    """

    order: Order
    merchant: str
    reference: str
    plan: tuple[Installment, ...]
    told: tuple[StoryEvent, ...]
    charged: tuple[Charged, ...]
    first_day: date | None
    agreed_at: datetime | None
    additional: str | None
    declined_on: date | None


async def find(session: Session, reference: str) -> list[tuple[UUID, UUID, str]]:
    """Orders of a merchant's reference, any merchant's: merchant, order and the merchant's name. For the operator."""
    rows = await session.fetch(_FIND, reference, MOST_FOUND)
    return [(row["merchant_id"], row["order_id"], row["name"]) for row in rows]


async def read(session: Session, merchant_id: UUID, order_id: UUID) -> Story | None:
    """In one round trip."""
    row = await session.fetchrow(_READ, merchant_id, order_id)
    if row is None:
        return None
    return Story(
        order_of(row), row["merchant"], row["reference"], plan_of(row["plan"]),
        tuple(StoryEvent(*each) for each in row["told"]), tuple(Charged(*each) for each in row["charged"]),
        row["first_day"], row["agreed_at"], row["additional"], row["declined_on"],
    )  # fmt: skip
