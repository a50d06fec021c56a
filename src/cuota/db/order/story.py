"""Reads the full history of an order for `cuota explain`: its events, its plan, and its charges."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from uuid import UUID
from zoneinfo import ZoneInfo

from cuota.core.installment import Installment
from cuota.core.order.order import Order
from cuota.db.nested import Nested
from cuota.db.order.columns import MONEY, PLAN, order_of, plan_of
from cuota.db.session import Session

MOST_FOUND = 50
_FIND = """SELECT d.merchant_id, d.order_id, m.name FROM order_details d JOIN merchants m USING (merchant_id)
    WHERE d.reference = $1 ORDER BY m.name, d.order_id LIMIT $2"""
_TOLD = Nested(
    "told",
    ("e.created_at", "e.type", "e.amount", "e.success", "e.message", "e.reference"),
    "FROM events e WHERE e.merchant_id = $1 AND e.order_id = o.order_id ORDER BY e.sequence",
)
_CHARGED = Nested(
    "charged",
    (
        "c.charge_id",
        "c.installment",
        "c.amount",
        "c.card_brand",
        "c.card_last4",
        "c.state",
        "c.reason",
        "c.created_at",
    ),
    "FROM charges c WHERE c.merchant_id = $1 AND c.order_id = o.order_id ORDER BY c.created_at",
)
_READ = f"""
SELECT {MONEY}, {PLAN.columns}, m.name AS merchant, d.reference, p.first_day, p.time_zone, p.agreed_at,
    {_TOLD.columns}, {_CHARGED.columns},
    (SELECT s.additional::text FROM sdk_checkouts s WHERE s.merchant_id = $1 AND s.order_id = o.order_id) AS additional,
    (SELECT t.day FROM messages t WHERE t.merchant_id = $1 AND t.order_id = o.order_id AND t.kind = 'declined'
        LIMIT 1) AS declined_on
FROM orders o JOIN merchants m ON m.merchant_id = $1 JOIN order_details d ON d.merchant_id = $1 AND d.order_id = o.order_id
    LEFT JOIN plans p ON p.merchant_id = $1 AND p.order_id = o.order_id {PLAN.join} {_TOLD.join} {_CHARGED.join}
WHERE o.merchant_id = $1 AND o.order_id = $2
"""


@dataclass(frozen=True, slots=True)
class StoryEvent:
    """An event of the order. The amount is in cents. `reference` is the merchant's reference of a movement."""

    at: datetime
    type: str
    amount: int
    success: bool
    message: str | None
    reference: str | None


@dataclass(frozen=True, slots=True)
class Charged:
    """A charge for an installment. The amount is in cents."""

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
    """Everything about one order. `first_day` and `agreed_at`, in the consumer's time zone, are None if the consumer has not agreed to a plan.

    `additional` (JSON text) is the merchant's data about its customer, as it was sent. `declined_on` is the date of the letter
    about a declined order, in the consumer's time zone; None if there is no letter.
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
    """Return the orders of all merchants with this reference: merchant id, order id and merchant name. For operators."""
    rows = await session.fetch(_FIND, reference, MOST_FOUND)
    return [(row["merchant_id"], row["order_id"], row["name"]) for row in rows]


async def read(session: Session, merchant_id: UUID, order_id: UUID) -> Story | None:
    """Read everything in one round trip. None if there is no such order."""
    row = await session.fetchrow(_READ, merchant_id, order_id)
    if row is None:
        return None
    agreed_at = row["agreed_at"] and row["agreed_at"].astimezone(ZoneInfo(row["time_zone"]))
    return Story(
        order_of(row), row["merchant"], row["reference"], plan_of(row),
        tuple(StoryEvent(*each) for each in _TOLD.of(row)), tuple(Charged(*each) for each in _CHARGED.of(row)),
        row["first_day"], agreed_at, row["additional"], row["declined_on"],
    )  # fmt: skip
