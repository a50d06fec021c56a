"""Reads the changes of a plan, and the plan that is to be changed. `db/order/outcomes.save` writes a change."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import date, datetime
from uuid import UUID
from zoneinfo import ZoneInfo

from cuota.core.order.change_plan import PlanBefore
from cuota.core.order.order import Order
from cuota.core.plan.change import ChangeKind, PlanChange, PlannedPayment
from cuota.core.plan.change_words import ChangedOrder
from cuota.db.merchant.merchants import SHOWN_NAME
from cuota.db.nested import Nested
from cuota.db.order.columns import MONEY, PLAN, order_of, plan_of
from cuota.db.pool import Row
from cuota.db.session import Session

# In the order of the fields of PlanChange.
CHANGES = Nested(
    "changes",
    (
        "h.number", "h.change_id", "h.kind", "h.changed_at", "h.changed_by", "h.days", "h.waived", "h.transfers",
        "h.before::text", "h.after::text", "h.reason", "h.text", "h.text_hash", "h.message_id", "h.told_at",
    ),
    "FROM plan_changes h WHERE h.merchant_id = $1 AND h.order_id = o.order_id ORDER BY h.number",
)  # fmt: skip
_TO_CHANGE = f"""
SELECT {MONEY}, {PLAN.columns}, {CHANGES.columns}, p.consumer_id, p.time_zone, p.agreed_at, p.agreement_hash, {SHOWN_NAME} AS merchant, d.reference
FROM orders o JOIN plans p ON p.merchant_id = $1 AND p.order_id = o.order_id JOIN merchants m ON m.merchant_id = $1
    JOIN order_details d ON d.merchant_id = $1 AND d.order_id = o.order_id {PLAN.join} {CHANGES.join}
WHERE o.merchant_id = $1 AND o.order_id = $2 AND o.status = 'Approved'
"""
_OF_ORDER = (
    f"SELECT {CHANGES.columns} FROM orders o {CHANGES.join} WHERE o.merchant_id = $1 AND o.order_id = $2"
)
_TOLD = """UPDATE plan_changes SET told_at = $4 WHERE merchant_id = $1 AND order_id = $2 AND message_id = $3
    AND told_at IS NULL"""
_EXISTS = "SELECT 1 FROM plan_changes WHERE merchant_id = $1 AND change_id = $2"
_FORGET = """UPDATE plan_changes SET text = '', reason = NULL WHERE merchant_id = $1 AND order_id = ANY ($2::uuid[])
    AND (text <> '' OR reason IS NOT NULL)"""


@dataclass(frozen=True, slots=True)
class PlanToChange:
    """A plan with its changes, and its consumer."""

    before: PlanBefore
    consumer_id: UUID

    @property
    def order(self) -> Order:
        """The order as it was read."""
        return self.before.order


def changes_of(row: Row) -> tuple[PlanChange, ...]:
    """Return the changes from a row with the columns of CHANGES, the first one first."""
    return tuple(change_of(*each) for each in CHANGES.of(row))


def change_of(
    number: int, change_id: UUID, kind: str, changed_at: datetime, changed_by: str, days: int, waived: int, transfers: int,
    before: str, after: str, *texts: object,
) -> PlanChange:  # fmt: skip
    """Return a change from the columns of CHANGES."""
    plans = payments_of(before), payments_of(after)
    return PlanChange(
        number, change_id, ChangeKind(kind), changed_at, changed_by, days, waived, transfers, *plans, *texts,  # type: ignore[arg-type]
    )  # fmt: skip


def payments_of(text: str) -> tuple[PlannedPayment, ...]:
    """Return the payments that a change stores as JSON text."""
    return tuple(
        PlannedPayment(number, date.fromisoformat(day), amount, fee)
        for number, day, amount, fee in json.loads(text)
    )


async def read_to_change(session: Session, merchant_id: UUID, order_id: UUID) -> PlanToChange | None:
    """Read an approved order with its plan and all changes, in one round trip. None if there is no such plan."""
    row = await session.fetchrow(_TO_CHANGE, merchant_id, order_id)
    if row is None:
        return None
    zone = ZoneInfo(row["time_zone"])
    order = order_of(row)
    about = ChangedOrder(
        row["merchant"],
        row["reference"],
        order.currency,
        row["agreed_at"].astimezone(zone).date(),
        row["agreement_hash"],
    )
    return PlanToChange(PlanBefore(order, plan_of(row), changes_of(row), zone, about), row["consumer_id"])


async def of_order(session: Session, merchant_id: UUID, order_id: UUID) -> tuple[PlanChange, ...]:
    """Return the changes of a plan, the first one first."""
    row = await session.fetchrow(_OF_ORDER, merchant_id, order_id)
    return () if row is None else changes_of(row)


async def told(session: Session, merchant_id: UUID, order_id: UUID, message_id: UUID, at: datetime) -> None:
    """Record when the message with the new plan was sent."""
    await session.fetchrow(_TOLD, merchant_id, order_id, message_id, at)


async def exists(session: Session, merchant_id: UUID, change_id: UUID) -> bool:
    """Return whether there is a change with this id."""
    return await session.fetchrow(_EXISTS, merchant_id, change_id) is not None


async def forget(session: Session, merchant_id: UUID, order_ids: list[UUID]) -> None:
    """Remove the texts of an erased consumer's changes."""
    await session.fetch(_FORGET, merchant_id, order_ids)
