"""Checks that each event waits in the outbox or is in the feed. An event in neither is never sent, and its money never paid out."""

from __future__ import annotations

from collections.abc import AsyncIterator
from uuid import UUID

from cuota.db.session import Session

# Publishing moves an event in one statement, so this statement finds the event in one of the two tables.
_ASTRAY = """
SELECT e.order_id, e.sequence, e.type, f.position FROM events e
    LEFT JOIN feed f ON f.merchant_id = $1 AND f.order_id = e.order_id AND f.sequence = e.sequence
    LEFT JOIN outbox o ON o.merchant_id = $1 AND o.order_id = e.order_id AND o.sequence = e.sequence
WHERE e.merchant_id = $1 AND (f.position IS NULL) = (o.order_id IS NULL) LIMIT 1000
"""


async def disagreements(session: Session, merchant_id: UUID) -> AsyncIterator[tuple[UUID, str, str]]:
    """Yield every event that disagrees, as (id of the order, payout or bank account, row, problem)."""
    for row in await session.fetch(_ASTRAY, merchant_id):
        name = f"events {row['sequence']}"
        if row["position"] is None:
            yield row["order_id"], name, f"{row['type']} is neither in the outbox nor in the feed"
        else:
            yield row["order_id"], name, f"{row['type']} is in the feed, but still in the outbox"
