"""Reads orders. Every statement names the merchant, so another merchant's order is never found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from uuid import UUID
from zoneinfo import ZoneInfo

from cuota.core.dispute.claims import Claims
from cuota.core.installment import Installment
from cuota.core.order.movement import Movement, MovementKind
from cuota.core.order.order import Order, Status
from cuota.core.payout.fee import OrderFees
from cuota.core.payout.terms import SettlementTerms
from cuota.db.gathered import Gathered
from cuota.db.order.by_id import ReadById
from cuota.db.order.columns import MONEY, MOVED, PLAN, movements_of, order_of, plan_of
from cuota.db.payout.terms import CAPTURES, FEES, TERMS, fees_of, versions_of
from cuota.db.pool import Pool, Row
from cuota.db.session import Session

_EARLIER = """FROM orders o LEFT JOIN movements m ON m.merchant_id = $1 AND m.order_id = $2
    AND m.kind = $3 AND m.reference = $4 {more} WHERE o.merchant_id = $1 AND o.order_id = $2"""
_FOUND = "m.movement_id, m.amount AS moved, m.created_at AS moved_at"

FOR_CAPTURE = f"SELECT {MONEY}, {_FOUND}, {TERMS.columns} {_EARLIER.format(more=TERMS.join)}"
_ZONE = "(SELECT p.time_zone FROM plans p WHERE p.merchant_id = $1 AND p.order_id = o.order_id) AS time_zone"
_PLAN_AND_FEES = f"{PLAN.columns}, {TERMS.columns}, {CAPTURES.columns}, {FEES.columns}, {_ZONE}"
_JOIN_THESE = f"{PLAN.join} {TERMS.join} {CAPTURES.join} {FEES.join}"
FOR_MOVEMENT = f"SELECT {MONEY}, {_FOUND}, {_PLAN_AND_FEES} {_EARLIER.format(more=_JOIN_THESE)}"
_EARLIER_MANY = """FROM unnest($2::uuid[], $3::text[], $4::text[]) WITH ORDINALITY AS q (order_id, kind, reference, n)
    JOIN orders o ON o.merchant_id = $1 AND o.order_id = q.order_id
    LEFT JOIN movements m ON m.merchant_id = $1 AND m.order_id = q.order_id
    AND m.kind = q.kind AND m.reference = q.reference"""
_FOR_CAPTURES = f"SELECT {MONEY}, {_FOUND}, {TERMS.columns}, q.n {_EARLIER_MANY} {TERMS.join}"
_FOR_MOVEMENTS = f"SELECT {MONEY}, {_FOUND}, {_PLAN_AND_FEES}, q.n {_EARLIER_MANY} {_JOIN_THESE}"
_PLANNED = f"{MONEY}, {PLAN.columns}, {TERMS.columns} FROM orders o {PLAN.join} {TERMS.join}"
WITH_PLAN = f"SELECT {_PLANNED} WHERE o.merchant_id = $1 AND o.order_id = $2"
_WITH_PLANS = f"SELECT {_PLANNED} WHERE o.merchant_id = $1 AND o.order_id = ANY ($2::uuid[])"
LOCK = "SELECT 1 FROM orders WHERE merchant_id = $1 AND order_id = $2 FOR UPDATE"
_RECORD = f"""{MONEY}, o.token, d.document, {MOVED.columns}
FROM orders o JOIN order_details d ON d.merchant_id = $1 AND d.order_id = o.order_id {MOVED.join}"""
_PAYER = "SELECT payer FROM plans WHERE merchant_id = $1 AND order_id = $2"
_EXPRESS = '"checkoutFlow":"express"'
RECORD_BY_ID = f"SELECT {_RECORD} WHERE o.merchant_id = $1 AND o.order_id = $2"
RECORD_BY_TOKEN = f"SELECT {_RECORD} WHERE o.merchant_id = $1 AND o.token = $2"
_RECORDS_BY_ID = f"SELECT {_RECORD} WHERE o.merchant_id = $1 AND o.order_id = ANY ($2::uuid[])"
FIND_BY_CHECKOUT_TOKEN = "SELECT order_id FROM orders WHERE merchant_id = $1 AND token = $2"
# After this, a save that is based on the order's earlier version writes nothing. An order that is charging or final has already
# changed.
_FENCE = """UPDATE orders SET version = version + 1
    WHERE merchant_id = $1 AND order_id = $2 AND status = 'Created' AND charging IS NULL"""


@dataclass(frozen=True, slots=True)
class Found:
    """The result of one read: an order, an earlier movement with the same key, and the plan and fees if they were requested.

    `terms` are all versions of the merchant's terms. `claims` are read only for an order with an open dispute or return notice.
    `zone` is the consumer's time zone, read only for a void or refund.
    """

    order: Order
    earlier: Movement | None = None
    plan: tuple[Installment, ...] = ()
    terms: tuple[SettlementTerms, ...] = ()
    fees: OrderFees = OrderFees()  # noqa: RUF009, the value cannot change
    claims: Claims | None = None
    zone: str | None = None

    @property
    def consumer_zone(self) -> ZoneInfo | None:
        """The consumer's time zone, if it was read."""
        return ZoneInfo(self.zone) if self.zone else None


@dataclass(frozen=True, slots=True)
class OrderRecord:
    """Everything that `GET /order` shows. `document` is the JSON text that never changes.

    `payer` is the consumer's data in the plan. It is read only for express orders, for the shipping address.
    """

    order: Order
    token: UUID
    document: str
    movements: tuple[Movement, ...]
    payer: str | None = None


async def read(
    session: Session,
    merchant_id: UUID,
    order_id: UUID,
    kind: MovementKind,
    reference: str,
    *,
    with_plan: bool,
) -> Found | None:
    """Read the data for a capture, void or refund, in one round trip. On a pool, concurrent reads share a batch."""
    asked = _Asked(merchant_id, order_id, kind, reference)
    if isinstance(session, Pool):
        return await session.together(_MOVEMENT_READS if with_plan else _CAPTURE_READS, merchant_id, asked)
    return await (_read_for_movement if with_plan else _read_for_capture)(session, asked)


@dataclass(frozen=True, slots=True)
class _Asked:
    merchant_id: UUID
    order_id: UUID
    kind: MovementKind
    reference: str


def _found(asked: _Asked, row: Row, *, with_plan: bool) -> Found:
    earlier = None
    if row["movement_id"] is not None:
        earlier = Movement(asked.kind, row["movement_id"], asked.reference, row["moved"], row["moved_at"])
    if not with_plan:
        return Found(order_of(row), earlier, terms=versions_of(row))
    plan, terms, fees = plan_of(row), versions_of(row), fees_of(row)
    return Found(order_of(row), earlier, plan, terms, fees, zone=row["time_zone"])


async def _read_one(session: Session, asked: _Asked, sql: str, *, with_plan: bool) -> Found | None:
    row = await session.fetchrow(sql, asked.merchant_id, asked.order_id, asked.kind, asked.reference)
    return None if row is None else _found(asked, row, with_plan=with_plan)


async def _read_many(
    session: Session, asked: Sequence[_Asked], sql: str, *, with_plan: bool
) -> list[Found | None]:
    columns = [one.order_id for one in asked], [one.kind for one in asked], [one.reference for one in asked]
    found: list[Found | None] = [None] * len(asked)
    for row in await session.fetch(sql, asked[0].merchant_id, *columns):
        place = row["n"] - 1
        found[place] = _found(asked[place], row, with_plan=with_plan)
    return found


_read_for_capture = partial(_read_one, sql=FOR_CAPTURE, with_plan=False)
_read_for_movement = partial(_read_one, sql=FOR_MOVEMENT, with_plan=True)
_CAPTURE_READS = Gathered(
    _read_for_capture, partial(_read_many, sql=_FOR_CAPTURES, with_plan=False), at_once=True
)
_MOVEMENT_READS = Gathered(
    _read_for_movement, partial(_read_many, sql=_FOR_MOVEMENTS, with_plan=True), at_once=True
)


async def read_with_plan(session: Session, merchant_id: UUID, order_id: UUID) -> Found | None:
    """Read the order and its plan in one round trip. Return None if there is no such order."""
    return await _PLAN_READ(session, merchant_id, order_id)


def _with_plan_of(row: Row) -> Found:
    return Found(order_of(row), None, plan_of(row), versions_of(row))


_PLAN_READ = ReadById(WITH_PLAN, _WITH_PLANS, _with_plan_of)


async def read_record(session: Session, merchant_id: UUID, name: UUID) -> OrderRecord | None:
    """Read the record by order id (UUID version 7) or checkout token (UUID version 4), in one round trip."""
    if name.version != 7:
        row = await session.fetchrow(RECORD_BY_TOKEN, merchant_id, name)
    else:
        row = await _RECORD_READ(session, merchant_id, name)
    if row is None:
        return None
    order, payer = order_of(row), None
    # Most orders have no payer to show, so the statement does not look for one.
    if _EXPRESS in row["document"] and order.status is Status.APPROVED:
        agreed = await session.fetchrow(_PAYER, merchant_id, order.order_id)
        payer = agreed["payer"] if agreed else None
    return OrderRecord(order, row["token"], row["document"], movements_of(row), payer)


_RECORD_READ = ReadById(RECORD_BY_ID, _RECORDS_BY_ID, lambda row: row, at_once=True)


async def find_id(session: Session, merchant_id: UUID, name: UUID) -> UUID | None:
    """Return an order id unchanged, without a check, or look up the order of a checkout token (UUID version 4)."""
    return name if name.version == 7 else await find_by_token(session, merchant_id, name)


async def find_by_token(session: Session, merchant_id: UUID, token: UUID) -> UUID | None:
    """Return the id of the order with this checkout token, or None."""
    row = await session.fetchrow(FIND_BY_CHECKOUT_TOKEN, merchant_id, token)
    return None if row is None else row["order_id"]


async def fence(session: Session, merchant_id: UUID, order_id: UUID) -> None:
    """Make all decisions about an open order outdated, including decisions that are being saved now."""
    await session.fetchrow(_FENCE, merchant_id, order_id)
