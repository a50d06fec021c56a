"""Reads a merchant's webhooks for the dashboard: an order's deliveries, and those that failed so far or were parked lately."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from cuota.db.session import Session
from cuota.db.webhook.deleted_deliveries import MAY_LACK
from cuota.db.webhook.events import OWN_ADDRESS

# The counts of the failing and of the parked deliveries stop here for each receiver.
MOST_COUNTED = 1000
# The newest deliveries of an order that are listed. An order may have thousands of events.
MOST_OF_ORDER = 200
# A parked delivery is shown for this long. A merchant that has read the event from the feed never sends it again.
PARKED_FOR = timedelta(days=30)
DELETED = "deleted"
"""The state that is shown for an old event if all of its deliveries were deleted."""

# An old event without deliveries is listed too, because its page can send the event again.
_OF_ORDER = f"""SELECT e.order_id, e.sequence, COALESCE(d.receiver, '{OWN_ADDRESS}') AS receiver, COALESCE(d.url, '') AS url,
        COALESCE(d.state, '{DELETED}') AS state, COALESCE(d.tries, 0) AS tries, COALESCE(d.failed, 0) AS failed, d.try_at,
        d.settled_at, e.type
    FROM events e LEFT JOIN deliveries d ON d.merchant_id = $1 AND d.order_id = e.order_id AND d.sequence = e.sequence
    WHERE e.merchant_id = $1 AND e.order_id = $2 AND (d.state IS NOT NULL OR {MAY_LACK})
    ORDER BY e.sequence DESC, d.receiver DESC LIMIT {MOST_OF_ORDER + 1}"""
# The merchant's receivers. A removed endpoint gets no deliveries any more.
_RECEIVERS = f"""(SELECT w.endpoint_id AS receiver FROM webhook_endpoints w WHERE w.merchant_id = $1 AND w.state <> 'deleted'
        UNION ALL SELECT '{OWN_ADDRESS}'::uuid) r"""
# The index deliveries_failing contains only these, by receiver. So no backlog of another receiver is read.
_OF_RECEIVER = """FROM deliveries n WHERE n.merchant_id = $1 AND n.receiver = r.receiver AND n.state = 'pending' AND n.failed > 0
        ORDER BY n.receiver, n.try_at, n.position"""
# Payouts also have events. They are in the same feed, with the payout's id as `order_id`.
_FAILING = f"""SELECT d.order_id, d.sequence, d.receiver, d.url, d.state, d.tries, d.failed, d.try_at, d.settled_at, e.type
    FROM {_RECEIVERS} CROSS JOIN LATERAL (SELECT * {_OF_RECEIVER} LIMIT $2) d
        LEFT JOIN events e ON e.merchant_id = $1 AND e.order_id = d.order_id AND e.sequence = d.sequence
    ORDER BY d.try_at, d.position LIMIT $2"""
_FAILING_AT = _FAILING.replace(_RECEIVERS, "(SELECT $3::uuid AS receiver) r")
_COUNT = f"""SELECT count(*) AS count FROM {_RECEIVERS} CROSS JOIN LATERAL (SELECT 1 {_OF_RECEIVER} LIMIT {MOST_COUNTED}) d"""
_FAILING_RECEIVERS = (
    f"SELECT r.receiver FROM {_RECEIVERS} CROSS JOIN LATERAL (SELECT 1 {_OF_RECEIVER} LIMIT 1) d"
)
# The same for deliveries whose last attempt failed. The index deliveries_parked contains only these.
_PARKED_OF = """FROM deliveries n WHERE n.merchant_id = $1 AND n.receiver = r.receiver AND n.state = 'parked'
        AND n.settled_at > {since} ORDER BY n.receiver, n.settled_at DESC, n.position DESC"""
_PARKED = f"""SELECT d.order_id, d.sequence, d.receiver, d.url, d.state, d.tries, d.failed, d.try_at, d.settled_at, e.type
    FROM {_RECEIVERS} CROSS JOIN LATERAL (SELECT * {_PARKED_OF.format(since="$3")} LIMIT $2) d
        LEFT JOIN events e ON e.merchant_id = $1 AND e.order_id = d.order_id AND e.sequence = d.sequence
    ORDER BY d.settled_at DESC, d.position DESC LIMIT $2"""
_PARKED_AT = _PARKED.replace(_RECEIVERS, "(SELECT $4::uuid AS receiver) r")
_COUNT_PARKED = f"""SELECT count(*) AS count FROM {_RECEIVERS} CROSS JOIN LATERAL (
    SELECT 1 {_PARKED_OF.format(since="$2")} LIMIT {MOST_COUNTED}) d"""


@dataclass(frozen=True, slots=True)
class ShownDelivery:
    """The delivery of one event to one receiver. `type` is None for an event that is not about an order."""

    order_id: UUID
    sequence: int
    receiver: UUID
    url: str
    state: str
    tries: int
    failed: int
    try_at: datetime | None
    settled_at: datetime | None
    type: str | None


async def of_order(session: Session, merchant_id: UUID, order_id: UUID) -> list[ShownDelivery]:
    """Return the deliveries of an order's events, the oldest first. If there are more than MOST_OF_ORDER, return one more of the newest."""
    return [_delivery(row) for row in reversed(await session.fetch(_OF_ORDER, merchant_id, order_id))]


async def failing(
    session: Session, merchant_id: UUID, limit: int, receiver: UUID | None = None
) -> list[ShownDelivery]:
    """Return deliveries that have failed and will be retried, the next retry first. With `receiver`, only those to that receiver."""
    if receiver is None:
        return [_delivery(row) for row in await session.fetch(_FAILING, merchant_id, limit)]
    return [_delivery(row) for row in await session.fetch(_FAILING_AT, merchant_id, limit, receiver)]


async def count_failing(session: Session, merchant_id: UUID) -> int:
    """Count the deliveries that have failed and will be retried, at most MOST_COUNTED for each receiver."""
    row = await session.fetchrow(_COUNT, merchant_id)
    return 0 if row is None else int(row["count"])


async def failing_receivers(session: Session, merchant_id: UUID) -> set[UUID]:
    """Return the receivers to which a delivery has failed and will be retried."""
    return {row["receiver"] for row in await session.fetch(_FAILING_RECEIVERS, merchant_id)}


async def parked(
    session: Session, merchant_id: UUID, limit: int, now: datetime, receiver: UUID | None = None
) -> list[ShownDelivery]:
    """Return deliveries that were parked within PARKED_FOR, the newest first. With `receiver`, only those to that receiver."""
    asked = merchant_id, limit, now - PARKED_FOR
    if receiver is None:
        return [_delivery(row) for row in await session.fetch(_PARKED, *asked)]
    return [_delivery(row) for row in await session.fetch(_PARKED_AT, *asked, receiver)]


async def count_parked(session: Session, merchant_id: UUID, now: datetime) -> int:
    """Count the deliveries that were parked within PARKED_FOR, at most MOST_COUNTED for each receiver."""
    row = await session.fetchrow(_COUNT_PARKED, merchant_id, now - PARKED_FOR)
    return 0 if row is None else int(row["count"])


def _delivery(row: Any) -> ShownDelivery:
    return ShownDelivery(*row)
