"""Reading orders. Every statement names the merchant: another merchant's order is not there."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol
from uuid import UUID

from cuota.core.installment import Installment
from cuota.core.movement import Kind, Movement
from cuota.core.order import Order, Status
from cuota.db.pool import Row

MONEY = """o.merchant_id, o.order_id, o.version, o.status, o.currency, o.amount, o.fee, o.auto_capture,
    o.created_at, o.expires_at, o.captured, o.voided, o.refunded, o.fee_returned, o.authorization_expires_at,
    o.lapsed, o.warned, o.card_failures, o.charging, o.charging_since, o.transfers, o.events,
    o.collect_at"""
PLAN = """ARRAY(SELECT ROW(i.number, i.due_on, i.amount, i.fee, i.charge_id, i.returned, i.charge_at, i.remind_at,
    i.failures) FROM installments i WHERE i.merchant_id = o.merchant_id AND i.order_id = o.order_id ORDER BY i.number) AS plan"""
_EARLIER = """FROM orders o LEFT JOIN movements m ON m.merchant_id = $1 AND m.order_id = $2
    AND m.kind = $3 AND m.reference = $4 WHERE o.merchant_id = $1 AND o.order_id = $2"""
_FOUND = "m.movement_id, m.amount AS moved, m.created_at AS moved_at"

FOR_CAPTURE = f"SELECT {MONEY}, {_FOUND} {_EARLIER}"
FOR_MOVEMENT = f"SELECT {MONEY}, {_FOUND}, {PLAN} {_EARLIER}"
WITH_PLAN = f"SELECT {MONEY}, {PLAN} FROM orders o WHERE o.merchant_id = $1 AND o.order_id = $2"
LOCK = "SELECT 1 FROM orders WHERE merchant_id = $1 AND order_id = $2 FOR UPDATE"
_RECORD = f"""
SELECT {MONEY}, o.token, d.document,
    ARRAY(SELECT ROW(m.kind, m.reference, m.movement_id, m.amount, m.created_at) FROM movements m
        WHERE m.merchant_id = o.merchant_id AND m.order_id = o.order_id
        ORDER BY m.created_at, m.movement_id) AS movements
FROM orders o JOIN order_details d USING (merchant_id, order_id)
WHERE o.merchant_id = $1 AND
"""
_PAYER = "SELECT payer FROM plans WHERE merchant_id = $1 AND order_id = $2"
_EXPRESS = '"checkoutFlow":"express"'
RECORD_BY_ID = _RECORD + "o.order_id = $2"
RECORD_BY_TOKEN = _RECORD + "o.token = $2"
FIND_BY_CHECKOUT_TOKEN = "SELECT order_id FROM orders WHERE merchant_id = $1 AND token = $2"
DUE = """
SELECT order_id FROM orders WHERE merchant_id = $1 AND due_at <= $2 ORDER BY due_at LIMIT $3
"""
# No decision: it only looks for what is due a little later. Whatever is saved meanwhile says anew when that is.
_ASIDE = "UPDATE orders SET due_at = $4 WHERE merchant_id = $1 AND order_id = $2 AND due_at <= $3"
# A plain read over all merchants finds who has something due; claiming then names each.
MERCHANTS_DUE = "SELECT DISTINCT merchant_id FROM orders WHERE due_at <= $1"


class Session(Protocol):
    """A pool, or one connection of it inside a transaction."""

    async def fetchrow(self, sql: str, *values: object) -> Row | None:
        """One row or None."""
        ...

    async def fetch(self, sql: str, *values: object) -> list[Row]:
        """All rows."""
        ...


@dataclass(frozen=True, slots=True)
class Found:
    """An order as one read saw it, with the earlier movement under the same key and, where asked for, its plan."""

    order: Order
    earlier: Movement | None = None
    plan: tuple[Installment, ...] = ()


@dataclass(frozen=True, slots=True)
class Record:
    """Everything that `GET /order` shows; `document` is the JSON text that never changes.

    `payer` is who agreed to pay, as the plan keeps it: read for express orders, which say where to send it.
    """

    order: Order
    token: UUID
    document: str
    movements: tuple[Movement, ...]
    payer: str | None = None


def order_of(row: Row) -> Order:
    """An Order from a row that has the columns of MONEY first."""
    return Order(
        merchant_id=row["merchant_id"],
        order_id=row["order_id"],
        version=row["version"],
        status=Status(row["status"]),
        currency=row["currency"],
        amount=row["amount"],
        fee=row["fee"],
        auto_capture=row["auto_capture"],
        created_at=row["created_at"],
        expires_at=row["expires_at"],
        captured=row["captured"],
        voided=row["voided"],
        refunded=row["refunded"],
        fee_returned=row["fee_returned"],
        authorization_expires_at=row["authorization_expires_at"],
        lapsed=row["lapsed"],
        warned=row["warned"],
        card_failures=row["card_failures"],
        charging=row["charging"],
        charging_since=row["charging_since"],
        transfers=row["transfers"],
        events=row["events"],
        collect_at=row["collect_at"],
    )


def plan_of(rows: Sequence[Sequence[object]]) -> tuple[Installment, ...]:
    """Installments from the rows of PLAN."""
    return tuple(Installment(*row) for row in rows)  # type: ignore[arg-type]


async def read(
    session: Session, merchant_id: UUID, order_id: UUID, kind: Kind, reference: str, *, with_plan: bool
) -> Found | None:
    """What a capture, void or refund decides on, in one round trip."""
    sql = FOR_MOVEMENT if with_plan else FOR_CAPTURE
    row = await session.fetchrow(sql, merchant_id, order_id, kind, reference)
    if row is None:
        return None
    earlier = None
    if row["movement_id"] is not None:
        earlier = Movement(kind, row["movement_id"], reference, row["moved"], row["moved_at"])
    return Found(order_of(row), earlier, plan_of(row["plan"]) if with_plan else ())


async def read_with_plan(session: Session, merchant_id: UUID, order_id: UUID) -> Found | None:
    """The order and its plan, in one round trip."""
    row = await session.fetchrow(WITH_PLAN, merchant_id, order_id)
    return None if row is None else Found(order_of(row), None, plan_of(row["plan"]))


async def read_record(session: Session, merchant_id: UUID, name: UUID) -> Record | None:
    """The record, by order id (time-ordered, version 7) or checkout token (random, version 4): one round trip."""
    sql = RECORD_BY_ID if name.version == 7 else RECORD_BY_TOKEN
    row = await session.fetchrow(sql, merchant_id, name)
    if row is None:
        return None
    movements = tuple(
        Movement(Kind(kind), movement_id, reference, amount, at)
        for kind, reference, movement_id, amount, at in row["movements"]
    )
    order, payer = order_of(row), None
    # Most orders have no such thing: they are not made to look for it.
    if _EXPRESS in row["document"] and order.status is Status.APPROVED:
        agreed = await session.fetchrow(_PAYER, merchant_id, order.order_id)
        payer = agreed["payer"] if agreed else None
    return Record(order, row["token"], row["document"], movements, payer)


async def find_by_token(session: Session, merchant_id: UUID, token: UUID) -> UUID | None:
    """The order behind a checkout token."""
    row = await session.fetchrow(FIND_BY_CHECKOUT_TOKEN, merchant_id, token)
    return None if row is None else row["order_id"]


async def due(session: Session, now: datetime, limit: int) -> list[tuple[UUID, UUID]]:
    """Orders for which something is due by itself, as (merchant id, order id); at most `limit` a merchant."""
    merchants = await session.fetch(MERCHANTS_DUE, now)
    return [
        (row["merchant_id"], item["order_id"])
        for row in merchants
        for item in await session.fetch(DUE, row["merchant_id"], now, limit)
    ]


async def step_aside(
    session: Session, merchant_id: UUID, order_id: UUID, now: datetime, until: datetime
) -> None:
    """An order that could not be settled lets the others have their turn."""
    await session.fetchrow(_ASIDE, merchant_id, order_id, now, until)
