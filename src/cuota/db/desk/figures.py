"""The figures of the dashboard's first page. They read a limited number of orders, so a large shop costs no more than a small one."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from uuid import UUID
from zoneinfo import ZoneInfo

from cuota.db.desk import webhooks
from cuota.db.session import Session

# The figures are computed from this many of the newest orders.
NEWEST = 10_000
SOON = timedelta(days=3)
_ORDERS = """
SELECT count(*) AS read, count(*) FILTER (WHERE o.created_at >= $2) AS today,
    count(*) FILTER (WHERE o.created_at >= $2 AND o.status = 'Approved') AS approved_today,
    coalesce(sum(o.amount) FILTER (WHERE o.created_at >= $2 AND o.status = 'Approved'), 0)::bigint AS amount_today,
    count(*) FILTER (WHERE o.created_at >= $3 AND o.status = 'Approved') AS approved,
    count(*) FILTER (WHERE o.created_at >= $3 AND o.status = 'Declined') AS declined,
    count(*) FILTER (WHERE o.created_at >= $3 AND o.refunded > 0) AS refunded,
    coalesce(sum(o.refunded) FILTER (WHERE o.created_at >= $3), 0)::bigint AS refunded_amount,
    count(*) FILTER (WHERE o.status = 'Approved' AND o.captured + o.voided < o.amount) AS to_capture,
    coalesce(sum(o.amount - o.captured - o.voided) FILTER (WHERE o.status = 'Approved'), 0)::bigint AS to_capture_amount,
    count(*) FILTER (WHERE o.status = 'Approved' AND o.captured + o.voided < o.amount
        AND o.authorization_expires_at < $4) AS expiring
FROM (SELECT created_at, status, amount, captured, voided, refunded, authorization_expires_at FROM orders
    WHERE merchant_id = $1 ORDER BY order_id DESC LIMIT $5) o
"""
# A day begins at midnight of the reader's time zone.
_DAYS = """
SELECT (o.created_at AT TIME ZONE $3)::date AS day, count(*) FILTER (WHERE o.status = 'Approved') AS approved,
    count(*) FILTER (WHERE o.status = 'Declined') AS declined,
    coalesce(sum(o.amount) FILTER (WHERE o.status = 'Approved'), 0)::bigint AS amount
FROM (SELECT created_at, status, amount FROM orders WHERE merchant_id = $1 ORDER BY order_id DESC LIMIT $4) o
WHERE o.created_at >= $2 GROUP BY 1 ORDER BY 1
"""
# The second condition lets the plan use the index disputes_going.
_DISPUTES = """SELECT count(*) AS count, min(respond_by) AS respond_by FROM disputes
    WHERE merchant_id = $1 AND status = 'open' AND status <> 'closed' AND respond_by > $2"""


@dataclass(frozen=True, slots=True)
class OrderFigures:
    """Counts, and sums in cents, of the newest orders. `read` is the number of orders that were read, at most NEWEST.

    `today` and the fields that end in `_today` are about the calendar day. The `to_capture` fields and `expiring` are about all
    orders that were read. The other fields are about the last seven days.
    """

    read: int
    today: int
    approved_today: int
    amount_today: int
    approved: int
    declined: int
    refunded: int
    refunded_amount: int
    to_capture: int
    to_capture_amount: int
    expiring: int


@dataclass(frozen=True, slots=True)
class DayFigures:
    """The orders of one day of the reader's calendar. `amount` is the sum of the approved ones, in cents."""

    day: date
    approved: int = 0
    declined: int = 0
    amount: int = 0


@dataclass(frozen=True, slots=True)
class Waiting:
    """Work for the merchant: open disputes with the first deadline, deliveries that have failed so far, and those parked lately."""

    disputes: int
    respond_by: datetime | None
    webhooks: int
    parked: int


async def orders(session: Session, merchant_id: UUID, today: datetime, now: datetime) -> OrderFigures:
    """Return the figures of the orders. `today` is the beginning of the day in the reader's time zone."""
    week = now - timedelta(days=7)
    row = await session.fetchrow(_ORDERS, merchant_id, today, week, now + SOON, NEWEST)
    assert row is not None
    return OrderFigures(*row)


async def by_day(
    session: Session, merchant_id: UUID, first: datetime, days: int, zone: str
) -> list[DayFigures]:
    """Return the figures of each of `days` days, including days without orders.

    `first` is the beginning of the first day.
    """
    rows = await session.fetch(_DAYS, merchant_id, first, zone, NEWEST)
    found = {row["day"]: DayFigures(*row) for row in rows}
    every = [first.astimezone(ZoneInfo(zone)).date() + timedelta(days=number) for number in range(days)]
    return [found.get(day, DayFigures(day)) for day in every]


async def waiting(session: Session, merchant_id: UUID, now: datetime) -> Waiting:
    """Return the work that waits for the merchant. A chargeback whose deadline is over waits for the card network."""
    disputes = await session.fetchrow(_DISPUTES, merchant_id, now)
    assert disputes is not None
    return Waiting(
        disputes["count"],
        disputes["respond_by"],
        await webhooks.count_failing(session, merchant_id),
        await webhooks.count_parked(session, merchant_id, now),
    )
