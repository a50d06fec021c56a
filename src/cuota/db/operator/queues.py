"""The waiting entries of the background jobs' queues, over all merchants.

Merchants on a database node that is down are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from cuota.db.cluster.across import fetch_across
from cuota.db.session import Session

_EVENTS = """SELECT o.merchant_id, count(*) AS waiting, min(e.created_at) AS since FROM outbox o JOIN events e
    ON e.merchant_id = o.merchant_id AND e.order_id = o.order_id AND e.sequence = o.sequence GROUP BY o.merchant_id"""
_WEBHOOKS = """SELECT merchant_id, count(*) AS waiting, min(try_at) AS since FROM deliveries
    WHERE state = 'pending' AND try_at <= $1 GROUP BY merchant_id"""
_MESSAGES = """SELECT merchant_id, count(*) AS waiting, min(try_at) AS since FROM messages WHERE try_at <= $1
    GROUP BY merchant_id"""
_ORDERS = """SELECT merchant_id, count(*) AS waiting, min(due_at) AS since FROM orders WHERE due_at <= $1
    GROUP BY merchant_id"""
_CARD_REFUNDS = """SELECT merchant_id, count(*) AS waiting, min(try_at) AS since FROM card_refunds WHERE try_at <= $1
    GROUP BY merchant_id"""
_CARD_EVENTS = """SELECT merchant_id, count(*) AS waiting, min(try_at) AS since FROM card_events WHERE try_at <= $1
    GROUP BY merchant_id"""
_PAYOUTS = """SELECT merchant_id, count(*) AS waiting, min(try_at) AS since FROM payouts WHERE try_at <= $1
    GROUP BY merchant_id"""

_DISPUTES = """SELECT merchant_id, count(*) AS waiting, min(due_at) AS since FROM disputes WHERE due_at <= $1
    GROUP BY merchant_id"""
# The card network has a deadline, so an answer counts until the processor has it. A retry waits for hours at most.
_ANSWERS = """SELECT merchant_id, count(*) AS waiting, min(at) AS since FROM dispute_evidence
    WHERE send_at <= $1::timestamptz + interval '1 day' GROUP BY merchant_id"""
# Each merchant has one row.
_BATCHES = "SELECT merchant_id, 1 AS waiting, close_at AS since FROM settlements WHERE close_at <= $1 ORDER BY close_at"


def _readers(table: str, only: str = "TRUE") -> str:
    """Return the statement that counts the events after the position up to which `table` has read each merchant's feed."""
    return f"""SELECT f.merchant_id, f.last_position - coalesce(r.position, 0) AS waiting, e.created_at AS since
        FROM feeds f LEFT JOIN {table} r ON r.merchant_id = f.merchant_id
        LEFT JOIN feed n ON n.merchant_id = f.merchant_id AND n.position = coalesce(r.position, 0) + 1
        LEFT JOIN events e ON e.merchant_id = n.merchant_id AND e.order_id = n.order_id AND e.sequence = n.sequence
        WHERE f.last_position > coalesce(r.position, 0) AND {only}"""


_SETTLEMENT = _readers("settlements")
# Only merchants with a team have a search in their dashboard.
_SEARCH = _readers(
    "order_terms_read", "EXISTS (SELECT FROM desk_people p WHERE p.merchant_id = f.merchant_id)"
)
# By the name of the queue. The statements that look for due entries take the service's time.
_DUE = {
    "webhooks": _WEBHOOKS,
    "messages": _MESSAGES,
    "orders": _ORDERS,
    "card_refunds": _CARD_REFUNDS,
    "card_events": _CARD_EVENTS,
    "payouts": _PAYOUTS,
    "disputes": _DISPUTES,
    "chargeback_answers": _ANSWERS,
    "batches": _BATCHES,
}
_BEHIND = {"events": _EVENTS, "settlement": _SETTLEMENT, "search": _SEARCH}


@dataclass(frozen=True, slots=True)
class Queue:
    """The number of waiting entries in a queue, and since when the oldest entry waits (None if no entry waits).

    Claimed entries do not count.
    """

    name: str
    waiting: int
    since: datetime | None


async def queues(session: Session, now: datetime) -> dict[str, Queue]:
    """Return every queue, by its name. `now` is the service's time."""
    found = {name: await fetch_across(session, sql) for name, sql in _BEHIND.items()}
    found |= {name: await fetch_across(session, sql, now) for name, sql in _DUE.items()}
    return {
        name: Queue(
            name,
            sum(row["waiting"] for row in rows),
            min((row["since"] for row in rows if row["since"] is not None), default=None),
        )
        for name, rows in found.items()
    }
