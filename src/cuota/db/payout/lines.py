"""Writes settlement lines from a merchant's feed (migration 0026)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from cuota.core.payout.terms import SettlementTerms
from cuota.db.cluster.across import fetch_across
from cuota.db.payout import terms_row
from cuota.db.session import Session

_MERCHANTS_BEHIND = """SELECT f.merchant_id FROM feeds f LEFT JOIN settlements s ON s.merchant_id = f.merchant_id
    WHERE f.last_position > coalesce(s.position, 0)
    UNION SELECT merchant_id FROM settlements WHERE close_at IS NULL AND lines > closed"""
_BEGIN = "INSERT INTO settlements (merchant_id, closed_until) VALUES ($1, $2) ON CONFLICT DO NOTHING"
# If a merchant has no cutoff, this is the time of its first open line, or else of the first movement in the next
# events.
_NEXT = f"""
SELECT s.position, s.close_at, coalesce(s.closed_until, $2) AS closed_until, CASE WHEN s.close_at IS NULL THEN coalesce((
    SELECT l.at FROM settlement_lines l WHERE l.merchant_id = $1 AND l.number = s.closed + 1
), (
    SELECT min(e.created_at) FROM feed f
        JOIN events e ON e.merchant_id = $1 AND e.order_id = f.order_id AND e.sequence = f.sequence
    WHERE f.merchant_id = $1 AND f.position > s.position AND f.position <= s.position + $3
        AND e.type IN ('capture.completed', 'refund.completed', 'dispute.opened', 'dispute.closed')
)) END AS moved_at, {terms_row.COLUMNS}
FROM settlements s LEFT JOIN LATERAL ({terms_row.AT.format("$2")}) t ON true WHERE s.merchant_id = $1
"""
_OPEN = "UPDATE settlements SET close_at = $3 WHERE merchant_id = $1 AND position = $2 AND close_at IS NULL"
_SETTLE = "SELECT settle_movements($1, $2) AS events"


@dataclass(frozen=True, slots=True)
class NextMovements:
    """The next work for a merchant. `moved_at` is the time of the first open line or the next movement, or None.

    `closed_until` is the last closed cutoff, or the time at which the merchant's first line is written.
    """

    position: int
    close_at: datetime | None
    closed_until: datetime
    moved_at: datetime | None
    terms: SettlementTerms


async def merchants_behind(session: Session) -> list[UUID]:
    """Return the merchants whose feed has events that were not read yet, or whose open lines have no cutoff."""
    return [row["merchant_id"] for row in await fetch_across(session, _MERCHANTS_BEHIND)]


async def next_movements(session: Session, merchant_id: UUID, now: datetime, most: int) -> NextMovements:
    """Read the next work, looking at the next `most` events. A merchant without a row in settlements gets one."""
    row = await session.fetchrow(_NEXT, merchant_id, now, most)
    if row is None:
        await session.fetchrow(_BEGIN, merchant_id, now)
        row = await session.fetchrow(_NEXT, merchant_id, now, most)
    assert row is not None
    return NextMovements(
        row["position"], row["close_at"], row["closed_until"], row["moved_at"], terms_row.terms_of(row)
    )


async def open_batch(session: Session, merchant_id: UUID, position: int, cutoff: datetime) -> None:
    """Set the next cutoff of a merchant that has none.

    Does nothing if another worker has read more of the feed meanwhile.
    """
    await session.fetchrow(_OPEN, merchant_id, position, cutoff)


async def settle(session: Session, merchant_id: UUID, most: int) -> int:
    """Write the lines of at most `most` further events. Return how many events were read.

    The result is 0 while another worker writes lines, and if the next movement belongs to a batch after the next
    cutoff.
    """
    row = await session.fetchrow(_SETTLE, merchant_id, most)
    assert row is not None
    return int(row["events"])
