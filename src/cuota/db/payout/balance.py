"""Reads a merchant's balance from totals, and from the movements that have no settlement line yet."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from cuota.core.payout.balance import Balance, OpenMoney, next_payout
from cuota.db.payout import terms_row
from cuota.db.payout.moved import moved_by
from cuota.db.session import Session

_NOT_SETTLED = """(
    SELECT f.order_id, f.sequence, f.position FROM feed f WHERE f.merchant_id = $1 AND f.position > coalesce(s.position, 0)
    UNION ALL SELECT o.order_id, o.sequence, NULL FROM outbox o WHERE o.merchant_id = $1)"""
_READ = f"""
SELECT coalesce(s.open_net, 0) AS open_net, coalesce(s.open_moved, 0) AS open_moved, coalesce(s.carried, 0) AS carried,
    coalesce(s.reserved, 0) AS reserved, s.close_at, w.net AS waiting_net, w.moved AS waiting_moved,
    s.paused_since IS NULL AND EXISTS (
        SELECT FROM bank_accounts b WHERE b.merchant_id = $1 AND b.effective_at <= coalesce(s.close_at, $2)
    ) AS payable, {terms_row.COLUMNS}
FROM (SELECT 1) one LEFT JOIN settlements s ON s.merchant_id = $1
    LEFT JOIN LATERAL ({terms_row.AT.format("$2")}) t ON true
    CROSS JOIN LATERAL (
        SELECT coalesce(sum(x.net), 0)::bigint AS net,
            coalesce(sum(x.net) FILTER (WHERE x.posting IN ('capture', 'refund', 'dispute_lost')), 0)::bigint AS moved
        FROM (
            SELECT t.posting, CASE WHEN t.credit = 'merchant_payable' THEN t.amount ELSE -t.amount END AS net
            FROM {moved_by(_NOT_SETTLED)} t
        ) x
    ) w
"""
_HELD = "SELECT release_at, amount FROM reserves WHERE merchant_id = $1 AND released_at IS NULL"


async def read(session: Session, merchant_id: UUID, now: datetime) -> Balance:
    """Return a merchant's balance. The balance of a merchant without movements is zero."""
    row = await session.fetchrow(_READ, merchant_id, now)
    assert row is not None
    held = await session.fetch(_HELD, merchant_id) if row["reserved"] else []
    net, moved = row["open_net"] + row["waiting_net"], row["open_moved"] + row["waiting_moved"]
    is_open = OpenMoney(
        net,
        moved,
        row["close_at"],
        [(each["release_at"], each["amount"]) for each in held],
        payable=row["payable"],
    )
    expected = next_payout(is_open, terms_row.terms_of(row), now)
    return Balance(row["carried"], net - row["carried"], row["reserved"], max(0, -net), expected)
