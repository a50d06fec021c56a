"""Settlement lines and payouts, written by SQL into the real tables with their real constraints."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from cuota.core.money import share
from cuota.core.payout.terms import in_force
from cuota.db.payout import terms as versions
from support.makers import Merchant

CLOSED = datetime(2026, 11, 24, 5, 0, 3, tzinfo=UTC)
_SETTLEMENT = "INSERT INTO settlements (merchant_id) VALUES ($1) ON CONFLICT DO NOTHING"
_ACCOUNT = """INSERT INTO bank_accounts (merchant_id, account_id, routing, account, last4, effective_at, created_at)
    SELECT $1, $2, 'x', 'x', '6789', $3, $3 WHERE NOT EXISTS (SELECT FROM bank_accounts WHERE merchant_id = $1)"""
_LINES = """WITH written AS (
    INSERT INTO settlement_lines (merchant_id, number, type, cause, order_id, reference, gross, fee, net, currency, at, sequence)
    SELECT $1, s.lines + n.number, n.type, gen_random_uuid(), n.order_id, n.reference, n.gross, n.fee, n.gross + n.fee, 'USD',
        n.at, n.sequence
    FROM settlements s, unnest($2::text[], $3::uuid[], $4::text[], $5::bigint[], $6::bigint[], $7::timestamptz[], $8::bigint[])
        WITH ORDINALITY AS n (type, order_id, reference, gross, fee, at, sequence, number)
    WHERE s.merchant_id = $1 RETURNING net)
UPDATE settlements SET lines = lines + (SELECT count(*) FROM written),
    open_net = open_net + (SELECT coalesce(sum(net), 0) FROM written) WHERE merchant_id = $1"""
_PAYOUT = """WITH closing AS (
    UPDATE settlements s SET payouts = s.payouts + 1, closed = s.lines, open_net = 0 FROM settlements was
    WHERE s.merchant_id = $1 AND was.merchant_id = $1
    RETURNING s.payouts, was.closed + 1 AS first_line, s.lines AS last_line, was.open_net)
INSERT INTO payouts (merchant_id, payout_id, number, status, amount, currency, first_line, last_line, account_id, cutoff,
    closed_at, arrival_date, paid_at, return_reason)
SELECT $1, $2, c.payouts, $3, c.open_net, 'USD', c.first_line, c.last_line,
    (SELECT account_id FROM bank_accounts WHERE merchant_id = $1 ORDER BY effective_at LIMIT 1), $4, $4, $5,
    CASE WHEN $3 = 'paid' THEN $4::timestamptz END, $6 FROM closing c"""
_TERMS = """INSERT INTO merchant_terms (merchant_id, version, valid_from, percent, fixed, refund_fee, payout, minimum, reserve,
    reserve_days, time_zone, cutoff, created_at)
    SELECT $1, 1 + count(*), $2, $3, $4, $5, $6, $7, $8, $9, 'America/New_York', '00:00', $2
    FROM merchant_terms WHERE merchant_id = $1"""

_READ = """UPDATE settlements s SET position = (SELECT last_position FROM feeds f WHERE f.merchant_id = $1)
    WHERE s.merchant_id = $1"""
_FEED = """SELECT f.order_id, m.kind, m.reference, m.amount, m.created_at, f.position
    FROM feed f JOIN events e ON e.merchant_id = $1 AND e.order_id = f.order_id AND e.sequence = f.sequence
        JOIN movements m ON m.merchant_id = $1 AND m.order_id = f.order_id AND m.kind = split_part(e.type, '.', 1)
            AND m.reference = e.reference
    WHERE f.merchant_id = $1 AND e.type IN ('capture.completed', 'refund.completed') ORDER BY f.position"""


@dataclass(frozen=True)
class Row:
    """A settlement line to write. Amounts are cents."""

    type: str
    gross: int = 0
    fee: int = 0
    order_id: UUID | None = None
    reference: str | None = None
    at: datetime = CLOSED - timedelta(hours=5)
    sequence: int | None = None


async def write_lines(merchant: Merchant, rows: list[Row]) -> None:
    """Add open settlement lines."""
    pool = merchant.service.context.pool
    await pool.execute(_SETTLEMENT, merchant.merchant_id)
    columns = ("type", "order_id", "reference", "gross", "fee", "at", "sequence")
    values = [[getattr(row, name) for row in rows] for name in columns]
    await pool.execute(_LINES, merchant.merchant_id, *values)


async def carry(merchant: Merchant) -> None:
    """Close a batch that paid nothing, so that all lines so far are carried."""
    sql = "UPDATE settlements SET carried = open_net, carried_line = lines WHERE merchant_id = $1"
    await merchant.service.context.pool.execute(sql, merchant.merchant_id)


async def write_account(merchant: Merchant) -> None:
    """If the merchant has no bank account, give it one that is in force."""
    await merchant.service.context.pool.execute(
        _ACCOUNT, merchant.merchant_id, uuid4(), CLOSED - timedelta(days=400)
    )


async def close(
    merchant: Merchant, status: str = "paid", at: datetime = CLOSED, reason: str | None = None
) -> str:
    """Close the open lines into one payout, and return its id."""
    payout_id = uuid4()
    await write_account(merchant)
    arrives: date = at.date() + timedelta(days=1)
    await merchant.service.context.pool.execute(
        _PAYOUT, merchant.merchant_id, payout_id, status, at, arrives, reason
    )
    return str(payout_id)


async def paid(merchant: Merchant, *rows: Row, **more: Any) -> str:
    """Write these lines and close them into one payout."""
    await write_lines(merchant, list(rows))
    return await close(merchant, **more)


async def write_terms(merchant: Merchant, at: datetime | None = None, **given: Any) -> None:
    """Add a version of the merchant's terms."""
    terms = {
        "percent": 590,
        "fixed": 30,
        "refund_fee": "kept",
        "payout": "daily",
        "minimum": 0,
        "reserve": 0,
        "reserve_days": 0,
    }
    terms |= given
    since = at or datetime(2026, 1, 1, tzinfo=UTC)
    await merchant.service.context.pool.execute(_TERMS, merchant.merchant_id, since, *terms.values())


async def lines_of_the_feed(merchant: Merchant) -> None:
    """Write a line for each capture and refund of the feed, and for its fees. The fees follow the merchant's first
    version of terms."""
    pool = merchant.service.context.pool
    stored = await versions.read_all(pool, merchant.merchant_id)
    found = await pool.fetch(_FEED, merchant.merchant_id)
    rows: list[Row] = []
    history: dict[UUID, list[int]] = {}
    for order_id, kind, reference, amount, at, sequence in found:
        terms = in_force(stored, at)
        sums = history.setdefault(order_id, [0, 0, 0, 0])
        common = {"order_id": order_id, "reference": reference, "at": at, "sequence": sequence}
        rows.append(Row(kind, amount if kind == "capture" else -amount, **common))
        if kind == "capture":
            fee = terms.fee(amount) if terms else 0
            sums[0] += amount
            sums[2] += terms.returnable(amount) if terms else 0
            rows += [Row("fee", 0, -fee, **common)] if fee else []
        else:
            sums[1] += amount
            back = max(0, share(sums[2], sums[1], sums[0]) - sums[3])
            sums[3] += back
            rows += [Row("fee_returned", 0, back, **common)] if back else []
    await write_lines(merchant, rows)
    await pool.execute(_READ, merchant.merchant_id)
