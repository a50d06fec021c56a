"""Reads a merchant's payouts and their settlement lines, in pages.

Lines never change and a payout is a fixed range of them, so consecutive pages are consistent.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from cuota.core.payout.line import LineType, SettlementLine
from cuota.core.payout.payout import Payout, PayoutStatus
from cuota.db.session import Session

NEWEST = 2**31 - 1
"""Above every number of a payout."""

PAYOUT = """SELECT p.payout_id, p.number, p.status, p.amount, p.currency, p.first_line, p.last_line, p.account_id, b.last4,
        p.cutoff, p.closed_at, coalesce(p.released_arrival, p.arrival_date) AS arrival_date, p.sent_at, p.paid_at, p.returned_at,
        p.return_reason, CASE WHEN p.released_at IS NULL THEN p.held_at END AS held_at
    FROM payouts p JOIN bank_accounts b ON b.merchant_id = $1 AND b.account_id = p.account_id
    WHERE p.merchant_id = $1"""
_PAGE = f"{PAYOUT} AND p.number < $2 AND p.status = ANY ($3::text[]) ORDER BY p.number DESC LIMIT $4"
_ONE = f"{PAYOUT} AND p.payout_id = $2"
_TOTALS = """SELECT p.payout_id, l.type, count(*) AS count, sum(l.gross)::bigint AS gross, sum(l.fee)::bigint AS fee,
        sum(l.net)::bigint AS net
    FROM payouts p JOIN settlement_lines l ON l.merchant_id = $1 AND l.number BETWEEN p.first_line AND p.last_line
    WHERE p.merchant_id = $1 AND p.payout_id = ANY ($2::uuid[]) GROUP BY p.payout_id, l.type ORDER BY min(l.number)"""
_LINES = """SELECT l.number, l.type, l.cause, l.order_id, d.reference AS merchant_reference, l.reference, l.gross, l.fee,
        l.currency, l.at, l.sequence, o.created_at, o.amount
    FROM settlement_lines l
        LEFT JOIN orders o ON o.merchant_id = $1 AND o.order_id = l.order_id
        LEFT JOIN order_details d ON d.merchant_id = $1 AND d.order_id = l.order_id
    WHERE l.merchant_id = $1 AND l.number > $2 AND l.number <= $3 ORDER BY l.number LIMIT $4"""


@dataclass(frozen=True, slots=True)
class LineTotal:
    """The lines of one type in a payout: how many, and their sums in cents."""

    type: str
    count: int
    gross: int
    fee: int
    net: int


@dataclass(frozen=True, slots=True)
class ListedLine:
    """A settlement line with the time and the amount of its order.

    Both are None for a line without an order.
    """

    line: SettlementLine
    ordered_at: datetime | None
    order_amount: int | None


async def payouts(
    session: Session, merchant_id: UUID, below: int, statuses: tuple[PayoutStatus, ...], limit: int
) -> list[Payout]:
    """Return at most `limit` payouts whose number is less than `below`, newest first.

    Without statuses, all statuses match.
    """
    names = [status.value for status in statuses or tuple(PayoutStatus)]
    rows = await session.fetch(_PAGE, merchant_id, below, names, limit)
    return [payout_of(merchant_id, row) for row in rows]


async def payout(session: Session, merchant_id: UUID, payout_id: UUID) -> Payout | None:
    """Return a payout, or None if this merchant has none with this id."""
    row = await session.fetchrow(_ONE, merchant_id, payout_id)
    return None if row is None else payout_of(merchant_id, row)


def payout_of(merchant_id: UUID, row: Any) -> Payout:
    """Return a Payout from a row with the columns of PAYOUT."""
    payout_id, number, status, *rest = row
    return Payout(merchant_id, payout_id, number, PayoutStatus(status), *rest)


async def totals(
    session: Session, merchant_id: UUID, payout_ids: list[UUID]
) -> dict[UUID, tuple[LineTotal, ...]]:
    """Return the totals of several payouts by the type of their lines. A type without a line is left out."""
    found: dict[UUID, list[LineTotal]] = {payout_id: [] for payout_id in payout_ids}
    for payout_id, *total in await session.fetch(_TOTALS, merchant_id, payout_ids):
        found[payout_id].append(LineTotal(*total))
    return {payout_id: tuple(each) for payout_id, each in found.items()}


async def lines(session: Session, merchant_id: UUID, after: int, last: int, limit: int) -> list[ListedLine]:
    """Return at most `limit` lines after the line `after`, up to and including the line `last`, in their order."""
    return [_line(row) for row in await session.fetch(_LINES, merchant_id, after, last, limit)]


def _line(row: Any) -> ListedLine:
    number, kind, *rest, ordered_at, order_amount = row
    return ListedLine(SettlementLine(number, LineType(kind), *rest), ordered_at, order_amount)
