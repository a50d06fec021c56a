"""Checks every merchant's settlement lines, payouts, reserves and their ledger, in batches and in constant memory."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

from cuota.db.payout.moved import moved_by
from cuota.db.session import Session
from cuota.db.verify import settlement_rules

BATCH = 2000

_MERCHANTS = """SELECT merchant_id FROM settlements UNION SELECT merchant_id FROM merchant_transfers
    UNION SELECT merchant_id FROM payouts UNION SELECT merchant_id FROM reserves
    UNION SELECT DISTINCT merchant_id FROM settlement_lines"""
_SETTLEMENT = """
SELECT s.*, n.*, o.*, p.*, t.*, v.*, (SELECT f.last_position FROM feeds f WHERE f.merchant_id = $1) AS published
FROM (SELECT $1::uuid AS merchant) m LEFT JOIN settlements s ON s.merchant_id = $1
CROSS JOIN LATERAL (SELECT count(*) AS line_count, coalesce(max(l.number), 0) AS last_number, max(l.sequence) AS last_sequence
    FROM settlement_lines l WHERE l.merchant_id = $1) n
CROSS JOIN LATERAL (SELECT coalesce(sum(l.net), 0)::bigint AS sum_open,
    coalesce(sum(l.net) FILTER (WHERE l.number <= s.carried_line), 0)::bigint AS sum_carried
    FROM settlement_lines l WHERE l.merchant_id = $1 AND l.number > s.closed) o
CROSS JOIN LATERAL (SELECT count(*) AS payout_count, coalesce(max(p.last_line), 0) AS last_paid_line
    FROM payouts p WHERE p.merchant_id = $1) p
CROSS JOIN LATERAL (SELECT count(*) AS transfer_count, coalesce(max(t.number), 0) AS last_transfer,
    coalesce(sum(CASE t.posting WHEN 'reserve_held' THEN t.amount WHEN 'reserve_released' THEN -t.amount END), 0)::bigint
        AS sum_reserved FROM merchant_transfers t WHERE t.merchant_id = $1) t
CROSS JOIN LATERAL (SELECT coalesce(sum(l.net) FILTER (WHERE l.type IN ('capture', 'refund', 'dispute_lost')), 0)::bigint AS sum_moved
    FROM settlement_lines l WHERE l.merchant_id = $1 AND l.number > greatest(s.closed, (
        SELECT coalesce(max(h.number), 0) FROM settlement_lines h
        WHERE h.merchant_id = $1 AND h.number > s.closed AND h.type = 'reserve_held'))) v
"""
# Each line with the values that the feed and the ledger have for it. Only pairs that differ are returned.
_MOVED = f"""
SELECT x.*, l.number, l.order_id AS line_order, l.reference AS line_reference, l.gross AS line_gross, l.fee AS line_fee,
    l.net AS line_net, l.currency AS line_currency, l.at AS line_at, l.sequence AS line_sequence
FROM (
    SELECT t.position, t.order_id, t.reference, t.cause, t.currency,
        CASE t.posting WHEN 'merchant_fee' THEN 'fee' WHEN 'merchant_fee_returned' THEN 'fee_returned'
            ELSE t.posting END AS type,
        min(t.created_at) AS at, sum(CASE WHEN t.credit = 'merchant_payable' THEN t.amount ELSE -t.amount END)::bigint AS net
    FROM {moved_by("(SELECT * FROM feed f WHERE f.merchant_id = $1 AND f.position > $2 AND f.position <= $3)")} t
    GROUP BY t.position, t.order_id, t.reference, t.posting, t.cause, t.currency
) x LEFT JOIN settlement_lines l ON l.merchant_id = $1 AND l.cause = x.cause AND l.type = x.type
WHERE (l.order_id, l.reference, l.net, l.currency, l.at, l.sequence) IS DISTINCT FROM
        (x.order_id, x.reference, x.net, x.currency, x.at, x.position)
    OR (l.gross, l.fee) <> CASE WHEN x.type IN ('fee', 'fee_returned') THEN (0::bigint, x.net) ELSE (x.net, 0::bigint) END
ORDER BY x.position LIMIT 1000
"""
# Lines without a row of the ledger. The transfers of each order are read once, because it may have thousands of lines.
_STRAY = """
SELECT u.number, u.type, o.order_id, u.cause, u.net
FROM (
    SELECT l.order_id, array_agg(l.number) AS numbers, array_agg(l.type) AS types, array_agg(l.cause) AS causes,
        array_agg(l.net) AS nets
    FROM settlement_lines l WHERE l.merchant_id = $1 AND l.number > $2 AND l.number <= $3 GROUP BY l.order_id
) o CROSS JOIN LATERAL (
    SELECT coalesce(jsonb_object_agg(t.cause || t.posting, true), '{}') AS causes FROM transfers t
    WHERE t.merchant_id = $1 AND t.order_id = o.order_id
) known CROSS JOIN LATERAL unnest(o.numbers, o.types, o.causes, o.nets) AS u (number, type, cause, net)
WHERE NOT known.causes ? (u.cause || CASE u.type WHEN 'fee' THEN 'merchant_fee'
    WHEN 'fee_returned' THEN 'merchant_fee_returned' ELSE u.type END)
AND NOT EXISTS (
    SELECT FROM merchant_transfers t WHERE t.merchant_id = $1 AND t.cause = u.cause AND t.posting = u.type
) ORDER BY u.number LIMIT 1000
"""
_TRANSFERS = """
SELECT t.*, l.number AS line, l.gross AS line_gross, l.fee AS line_fee, l.net AS line_net, l.currency AS line_currency,
    l.at AS line_at, l.order_id AS line_order, l.sequence AS line_sequence,
    (SELECT v.amount FROM reserves v WHERE v.merchant_id = $1 AND v.reserve_id = t.cause) AS reserve_amount,
    (SELECT p.amount FROM payouts p WHERE p.merchant_id = $1 AND p.payout_id = t.cause) AS payout_amount
FROM merchant_transfers t
    LEFT JOIN settlement_lines l ON l.merchant_id = $1 AND l.cause = t.cause AND l.type = t.posting
WHERE t.merchant_id = $1 AND t.number > $2 ORDER BY t.number LIMIT $3
"""
_PAYOUTS = """
SELECT p.*, s.summed, s.counted, s.foreign_lines, e.told, e.last_told, e.differ, t.posted, t.posted_at, t.paid, t.returned,
    EXISTS (SELECT FROM bank_accounts b WHERE b.merchant_id = $1 AND b.account_id = p.account_id) AS has_account,
    (SELECT b.last_line FROM payouts b WHERE b.merchant_id = $1 AND b.number = p.number - 1) AS before
FROM payouts p
CROSS JOIN LATERAL (SELECT coalesce(sum(l.net), 0)::bigint AS summed, count(*) AS counted,
    count(*) FILTER (WHERE l.currency <> p.currency) AS foreign_lines FROM settlement_lines l
    WHERE l.merchant_id = $1 AND l.number >= p.first_line AND l.number <= p.last_line) s
CROSS JOIN LATERAL (SELECT count(*) AS told, coalesce(max(e.sequence), 0) AS last_told,
    count(*) FILTER (WHERE e.amount <> p.amount) AS differ FROM events e
    WHERE e.merchant_id = $1 AND e.order_id = p.payout_id) e
CROSS JOIN LATERAL (SELECT max(t.amount) FILTER (WHERE t.posting = 'payout') AS posted,
    max(t.created_at) FILTER (WHERE t.posting = 'payout') AS posted_at,
    max(t.amount) FILTER (WHERE t.posting = 'payout_paid') AS paid,
    max(t.amount) FILTER (WHERE t.posting = 'payout_returned') AS returned FROM merchant_transfers t
    WHERE t.merchant_id = $1 AND t.cause = p.payout_id) t
WHERE p.merchant_id = $1 AND p.number > $2 ORDER BY p.number LIMIT $3
"""
_RESERVES = """
SELECT v.*, t.held, t.held_posted, t.released, t.released_posted FROM reserves v
CROSS JOIN LATERAL (SELECT max(t.amount) FILTER (WHERE t.posting = 'reserve_held') AS held,
    max(t.created_at) FILTER (WHERE t.posting = 'reserve_held') AS held_posted,
    max(t.amount) FILTER (WHERE t.posting = 'reserve_released') AS released,
    max(t.created_at) FILTER (WHERE t.posting = 'reserve_released') AS released_posted FROM merchant_transfers t
    WHERE t.merchant_id = $1 AND t.cause = v.reserve_id) t
WHERE v.merchant_id = $1 AND v.reserve_id > $2 ORDER BY v.reserve_id LIMIT $3
"""
# Each of these is read in batches after the last key, and checked row by row.
_ROW_BY_ROW = (
    (_TRANSFERS, "number", 0, "cause", settlement_rules.transfer),
    (_PAYOUTS, "number", 0, "payout_id", settlement_rules.payout),
    (_RESERVES, "reserve_id", UUID(int=0), "reserve_id", settlement_rules.reserve),
)

FoundRow = tuple[UUID, UUID, str, str]


async def disagreements(session: Session) -> AsyncIterator[FoundRow]:
    """Yield every row that disagrees, as (merchant id, id of the order, payout, reserve or adjustment, row, problem)."""
    for row in await session.fetch(_MERCHANTS):
        async for found in _of_merchant(session, row["merchant_id"]):
            yield found


async def _of_merchant(session: Session, merchant_id: UUID) -> AsyncIterator[FoundRow]:
    whole = await session.fetchrow(_SETTLEMENT, merchant_id)
    assert whole is not None
    for name, problem in settlement_rules.settlement(whole):
        yield merchant_id, merchant_id, name, problem
    for after in range(0, whole["position"] or 0, BATCH):
        until = min(after + BATCH, whole["position"])
        for row in await session.fetch(_MOVED, merchant_id, after, until):
            for name, problem in settlement_rules.line(row):
                yield merchant_id, row["order_id"], name, problem
    for after in range(0, whole["last_number"], BATCH):
        for row in await session.fetch(_STRAY, merchant_id, after, after + BATCH):
            name = f"settlement_lines {row['number']}"
            problem = f"{row['type']} of {row['net']}, which no row of the ledger has caused"
            yield merchant_id, row["order_id"] or row["cause"], name, problem
    async for found in _row_by_row(session, merchant_id):
        yield found


async def _row_by_row(session: Session, merchant_id: UUID) -> AsyncIterator[FoundRow]:
    for sql, key, first, named, rule in _ROW_BY_ROW:
        last: Any = first
        while rows := await session.fetch(sql, merchant_id, last, BATCH):
            for row in rows:
                for name, problem in rule(row):
                    yield merchant_id, row[named], name, problem
            last = rows[-1][key]
