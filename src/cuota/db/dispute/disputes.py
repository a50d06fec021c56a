"""Reads disputes and return notices. Every statement names the merchant, so another merchant's dispute is never found."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from operator import itemgetter
from uuid import UUID
from zoneinfo import ZoneInfo

from cuota.core.dispute.claims import Claims
from cuota.core.dispute.dispute import (
    Dispute,
    DisputeKind,
    DisputeOutcome,
    DisputeParty,
    DisputeReason,
    DisputeStatus,
)
from cuota.core.dispute.return_notice import ReturnNotice
from cuota.db.cluster.across import fetch_across
from cuota.db.cluster.living import find_one
from cuota.db.order.claim_tables import DISPUTE
from cuota.db.plan import charges
from cuota.db.plan.plans import CARD_JOIN, SAME_CARD
from cuota.db.pool import Pool, Row
from cuota.db.session import Session

_STORED = tuple(column.split()[0] for column in DISPUTE if not column.startswith("due_at"))
COLUMNS = ", ".join(f"d.{name}" for name in _STORED)
_values = itemgetter(*_STORED)
_OF_ORDER = f"""SELECT {COLUMNS} FROM disputes d WHERE d.merchant_id = $1 AND d.order_id = $2
    ORDER BY d.opened_at, d.dispute_id"""
_RETURNS = """SELECT r.return_id, r.carrier, r.tracking, r.noticed_at, r.hold_until, r.installment, r.due_on, r.ended_at
    FROM return_notices r WHERE r.merchant_id = $1 AND r.order_id = $2 ORDER BY r.noticed_at, r.return_id"""
_PLAN = f"""SELECT p.time_zone, ARRAY(SELECT c.charge_id FROM charges c WHERE c.merchant_id = $1 AND c.order_id = $2
        AND c.state = 'succeeded' AND {SAME_CARD}) AS of_card
    FROM plans p {CARD_JOIN} WHERE p.merchant_id = $1 AND p.order_id = $2"""
_FIND = f"SELECT d.order_id, {COLUMNS} FROM disputes d WHERE d.merchant_id = $1 AND d.dispute_id = $2"
_BY_REFERENCE = (
    f"""SELECT {COLUMNS} FROM disputes d WHERE d.merchant_id = $1 AND d.order_id = $2 AND d.reference = $3"""
)
_ANYWHERE = "SELECT merchant_id, order_id FROM disputes WHERE dispute_id = $1"
_MERCHANTS_DUE = "SELECT DISTINCT merchant_id FROM disputes WHERE due_at <= $1"
_DUE = """SELECT order_id, dispute_id FROM disputes WHERE merchant_id = $1 AND due_at <= $2 ORDER BY due_at LIMIT $3"""


@dataclass(frozen=True, slots=True)
class FoundDispute:
    """A dispute, and the order that it is about."""

    order_id: UUID
    dispute: Dispute


@dataclass(frozen=True, slots=True)
class DueDispute:
    """A dispute with scheduled work that is due."""

    merchant_id: UUID
    order_id: UUID
    dispute_id: UUID


def dispute_of(row: Row) -> Dispute:
    """Return a Dispute from a row with the columns of COLUMNS."""
    fields = dict(zip(_STORED, _values(row), strict=True))
    appealed_by, outcome = fields["appealed_by"], fields["outcome"]
    fields.update(
        kind=DisputeKind(fields["kind"]),
        reason=DisputeReason(fields["reason"]),
        status=DisputeStatus(fields["status"]),
        opened_by=DisputeParty(fields["opened_by"]),
        appealed_by=None if appealed_by is None else DisputeParty(appealed_by),
        outcome=None if outcome is None else DisputeOutcome(outcome),
    )
    return Dispute(**fields)


async def of_order(session: Session, merchant_id: UUID, order_id: UUID) -> list[Dispute]:
    """Return all disputes of an order, the earliest first."""
    return [dispute_of(row) for row in await session.fetch(_OF_ORDER, merchant_id, order_id)]


async def returns_of_order(session: Session, merchant_id: UUID, order_id: UUID) -> list[ReturnNotice]:
    """Return all return notices of an order, the earliest first."""
    return [ReturnNotice(*row) for row in await session.fetch(_RETURNS, merchant_id, order_id)]


async def claims(session: Session, merchant_id: UUID, order_id: UUID) -> Claims | None:
    """Return an order's open claims, or None if the consumer has not agreed to a plan.

    Read the order before this call. If the order changes in between, its version is outdated, so nothing is saved.
    """
    row = await session.fetchrow(_PLAN, merchant_id, order_id)
    if row is None:
        return None
    disputes = await of_order(session, merchant_id, order_id)
    returns = await returns_of_order(session, merchant_id, order_id)
    charged_back = {each.charge_id for each in disputes if each.is_open and each.charge_id is not None}
    in_force = [each for each in returns if each.ended_at is None]
    unsent, paid_otherwise = await charges.unsent(session, merchant_id, order_id)
    return Claims(
        ZoneInfo(row["time_zone"]),
        tuple(each for each in disputes if each.is_open),
        in_force[-1] if in_force else None,
        tuple(each for each in disputes if each.kind is DisputeKind.DISPUTE and not each.is_open),
        frozenset(row["of_card"]),
        unsent,
        {each: await charges.borne(session, merchant_id, order_id, each) for each in charged_back},
        paid_otherwise,
    )


async def find(session: Session, merchant_id: UUID, dispute_id: UUID) -> FoundDispute | None:
    """Return a dispute of this merchant, or None."""
    row = await session.fetchrow(_FIND, merchant_id, dispute_id)
    return None if row is None else FoundDispute(row["order_id"], dispute_of(row))


async def find_by_reference(
    session: Session, merchant_id: UUID, order_id: UUID, reference: str
) -> Dispute | None:
    """Return the chargeback with the processor's reference, or None."""
    row = await session.fetchrow(_BY_REFERENCE, merchant_id, order_id, reference)
    return None if row is None else dispute_of(row)


async def find_anywhere(pool: Pool, dispute_id: UUID) -> tuple[UUID, UUID] | None:
    """Return the merchant's id and the order's id of a dispute, for the operator; or None.

    Raises NodeLost if the dispute may be on a node that is down.
    """
    row = await find_one(pool, _ANYWHERE, dispute_id)
    return None if row is None else (row["merchant_id"], row["order_id"])


async def due(session: Session, now: datetime, limit: int) -> list[DueDispute]:
    """Return the disputes whose reminder, deadline or closing is due, at most `limit` of each merchant."""
    return [
        DueDispute(merchant["merchant_id"], row["order_id"], row["dispute_id"])
        for merchant in await fetch_across(session, _MERCHANTS_DUE, now)
        for row in await session.fetch(_DUE, merchant["merchant_id"], now, limit)
    ]
