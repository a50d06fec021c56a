"""Lists a merchant's payouts and disputes, sorted by time, amount or deadline.

An index sorts the rows by time. A merchant has few payouts and disputes compared with its orders, so the other sorts need no
index: the statement sorts the newest MOST_SORTED rows by amount or deadline, and the page says if there are more. A page begins after
the row $2.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from uuid import UUID

from cuota.core.desk.sort import Sort
from cuota.core.dispute.dispute import DisputeStatus
from cuota.core.payout.payout import Payout, PayoutStatus
from cuota.db.dispute.disputes import COLUMNS, FoundDispute, dispute_of
from cuota.db.dispute.listing import GOING, OF_STATUS
from cuota.db.payout.listing import PAYOUT, payout_of
from cuota.db.session import Session

MOST_SORTED = 5000
_HIGHEST = 2**63 - 1
# Below and above every payout number and every dispute id.
_NUMBERS = (0, 2**31 - 1)
_IDS = (UUID(int=0), UUID(int=2**128 - 1))
_DOWN = {Sort.NEWEST, Sort.LARGEST}
_BY_TIME = {Sort.NEWEST, Sort.OLDEST}

_PAYOUTS_BY_TIME = f"{PAYOUT} AND {{behind}} AND p.status = ANY ($3::text[]) ORDER BY {{way}} LIMIT $4"
_PAYOUTS = f"""SELECT p.* FROM ({PAYOUT} AND p.status = ANY ($3::text[]) ORDER BY p.number DESC LIMIT {MOST_SORTED}) p
    WHERE {{behind}} ORDER BY {{way}} LIMIT $4"""
_PAID = "coalesce((SELECT a.amount FROM payouts a WHERE a.merchant_id = $1 AND a.number = $2), {otherwise})"
_PAYOUT_SORTS = {
    Sort.NEWEST: (_PAYOUTS_BY_TIME, "p.number < $2", "p.number DESC"),
    Sort.OLDEST: (_PAYOUTS_BY_TIME, "p.number > $2", "p.number"),
    Sort.LARGEST: (
        _PAYOUTS,
        f"(p.amount, p.number) < ({_PAID.format(otherwise=_HIGHEST)}, $2)",
        "p.amount DESC, p.number DESC",
    ),
    Sort.SMALLEST: (
        _PAYOUTS,
        f"(p.amount, p.number) > ({_PAID.format(otherwise=0)}, $2)",
        "p.amount, p.number",
    ),
}

_DISPUTES_BY_TIME = f"""SELECT d.order_id, {COLUMNS} FROM disputes d WHERE d.merchant_id = $1 AND {{behind}}
    AND {OF_STATUS} ORDER BY {{way}} LIMIT $4"""
_DISPUTES = f"""SELECT d.* FROM (SELECT d.order_id, {COLUMNS} FROM disputes d WHERE d.merchant_id = $1
        AND {OF_STATUS} ORDER BY d.dispute_id DESC LIMIT {MOST_SORTED}) d
    WHERE {{behind}} ORDER BY {{way}} LIMIT $4"""
_OF = "coalesce((SELECT a.{column} FROM disputes a WHERE a.merchant_id = $1 AND a.dispute_id = $2), {otherwise})"
_EARLIEST = "'-infinity'::timestamptz"
_DISPUTE_SORTS = {
    Sort.NEWEST: (_DISPUTES_BY_TIME, "d.dispute_id < $2", "d.dispute_id DESC"),
    Sort.OLDEST: (_DISPUTES_BY_TIME, "d.dispute_id > $2", "d.dispute_id"),
    Sort.LARGEST: (
        _DISPUTES,
        f"(d.amount, d.dispute_id) < ({_OF.format(column='amount', otherwise=_HIGHEST)}, $2)",
        "d.amount DESC, d.dispute_id DESC",
    ),
    Sort.SMALLEST: (
        _DISPUTES,
        f"(d.amount, d.dispute_id) > ({_OF.format(column='amount', otherwise=0)}, $2)",
        "d.amount, d.dispute_id",
    ),
    Sort.DEADLINE: (
        _DISPUTES,
        f"(d.respond_by, d.dispute_id) > ({_OF.format(column='respond_by', otherwise=_EARLIEST)}, $2)",
        "d.respond_by, d.dispute_id",
    ),
}


_MORE_PAYOUTS = f"""SELECT p.number FROM payouts p WHERE p.merchant_id = $1 AND p.status = ANY ($2::text[])
    ORDER BY p.number DESC OFFSET {MOST_SORTED} LIMIT 1"""
_MORE_DISPUTES = f"""SELECT d.dispute_id FROM disputes d WHERE d.merchant_id = $1 AND d.status = ANY ($2::text[])
    ORDER BY d.dispute_id DESC OFFSET {MOST_SORTED} LIMIT 1"""


async def payouts(
    session: Session,
    merchant_id: UUID,
    sort: Sort,
    after: int | None,
    statuses: tuple[PayoutStatus, ...],
    limit: int,
) -> list[Payout]:
    """Return at most `limit` payouts after the payout with the number `after`. An empty list of statuses means any status."""
    sql, behind, way = _PAYOUT_SORTS[sort]
    start = after if after is not None else _NUMBERS[sort in _DOWN]
    names = [status.value for status in statuses or tuple(PayoutStatus)]
    rows = await session.fetch(sql.format(behind=behind, way=way), merchant_id, start, names, limit)
    return [payout_of(merchant_id, row) for row in rows]


async def disputes(
    session: Session,
    merchant_id: UUID,
    sort: Sort,
    after: UUID | None,
    statuses: tuple[DisputeStatus, ...],
    limit: int,
) -> list[FoundDispute]:
    """Return at most `limit` disputes after the dispute `after`. An empty list of statuses means any status."""
    sql, behind, way = _DISPUTE_SORTS[sort]
    start = after if after is not None else _IDS[sort in _DOWN]
    names = [status.value for status in statuses or tuple(DisputeStatus)]
    if DisputeStatus.CLOSED not in names:
        sql = sql.replace(OF_STATUS, GOING)
    rows = await session.fetch(sql.format(behind=behind, way=way), merchant_id, start, names, limit)
    return [FoundDispute(row["order_id"], dispute_of(row)) for row in rows]


async def leaves_out_payouts(
    session: Session, merchant_id: UUID, sort: Sort, statuses: tuple[PayoutStatus, ...]
) -> bool:
    """Return whether the list in this order leaves out the oldest payouts."""
    return await _leaves_out(session, _MORE_PAYOUTS, merchant_id, sort, statuses or tuple(PayoutStatus))


async def leaves_out_disputes(
    session: Session, merchant_id: UUID, sort: Sort, statuses: tuple[DisputeStatus, ...]
) -> bool:
    """Return whether the list in this order leaves out the oldest disputes."""
    return await _leaves_out(session, _MORE_DISPUTES, merchant_id, sort, statuses or tuple(DisputeStatus))


async def _leaves_out(
    session: Session, more: str, merchant_id: UUID, sort: Sort, statuses: Sequence[StrEnum]
) -> bool:
    # A list by time goes on to its end: only the other orders sort the newest rows.
    if sort in _BY_TIME:
        return False
    return await session.fetchrow(more, merchant_id, [status.value for status in statuses]) is not None
