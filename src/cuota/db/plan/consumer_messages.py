"""Lists the messages to one consumer, about the orders of all merchants, newest first."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from cuota.db.plan.addressee import addressee
from cuota.db.position import Position
from cuota.db.session import Session

# Messages about the consumer's plans, letters about their declined orders, and answers about orders that a person reviewed. One order
# may have messages to two people who opened the same checkout.
_PAGE = f"""
WITH theirs AS (
    SELECT p.merchant_id, p.order_id, 'plan' AS source FROM plans p WHERE p.consumer_id = $1
    UNION SELECT d.merchant_id, d.order_id, 'decision' FROM decisions d WHERE d.consumer_id = $1 AND NOT d.approved
    UNION SELECT r.merchant_id, r.order_id, 'review' FROM reviews r WHERE r.consumer_id = $1
)
SELECT m.merchant_id, m.order_id, m.message_id, m.kind, m.state, m.reason, m.created_at, m.settled_at, m.said
FROM theirs t JOIN messages m ON m.merchant_id = t.merchant_id AND m.order_id = t.order_id
    AND t.source = {addressee("m.kind")}
WHERE ($2::timestamptz IS NULL OR (m.created_at, m.message_id) < ($2::timestamptz, $3::uuid))
ORDER BY m.created_at DESC, m.message_id DESC LIMIT $4
"""


@dataclass(frozen=True, slots=True)
class ListedMessage:
    """A message to a consumer. `said` is the encrypted text; None if it was not sent, sent by an earlier release, or erased."""

    merchant_id: UUID
    order_id: UUID
    message_id: UUID
    kind: str
    state: str
    reason: str | None
    created_at: datetime
    settled_at: datetime | None
    said: bytes | None


async def page(
    session: Session, consumer_id: UUID, after: Position | None, limit: int
) -> list[ListedMessage]:
    """Return the messages after a position, newest first."""
    at, message_id = after or (None, None)
    return [ListedMessage(**row) for row in await session.fetch(_PAGE, consumer_id, at, message_id, limit)]
