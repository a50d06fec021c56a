"""Reads how the card rails are doing, over all merchants, for operators."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from cuota.db.session import Session

# A token without a colon was stored before rails had names; it belongs to the active rail ($2).
_CHARGES = """SELECT CASE WHEN strpos(card_token, ':') > 0 THEN split_part(card_token, ':', 1) ELSE $2 END AS rail,
        count(*) FILTER (WHERE state = 'succeeded') AS approved, count(*) FILTER (WHERE state = 'failed') AS declined,
        count(*) FILTER (WHERE state = 'pending') AS pending
    FROM charges WHERE created_at > $1 GROUP BY 1"""
_EVENTS = """SELECT (SELECT max(e.received_at) FROM card_events e WHERE e.rail = $1) AS last_event_at,
    (SELECT count(*) FROM card_events e WHERE e.rail = $1 AND e.apply_at IS NOT NULL) AS waiting,
    (SELECT count(*) FROM card_events e WHERE e.rail = $1 AND e.kind = 'dispute.opened' AND NOT EXISTS (
        SELECT FROM card_events c WHERE c.rail = $1 AND c.kind = 'dispute.closed' AND c.reference = e.reference)) AS disputes"""
_FETCHES = "SELECT rail, fetched_at, problem FROM card_rails"
# What the books do not do by themselves.
_NOTABLE = """SELECT rail, kind, at, merchant_id, order_id, amount, reason, reference, status FROM card_events
    WHERE kind IN ('refund.elsewhere', 'refund.failed', 'dispute.opened', 'dispute.changed', 'dispute.closed')
    ORDER BY at DESC LIMIT $1"""


@dataclass(frozen=True, slots=True)
class RailReport:
    """A rail's charges since a time, by result, and what its processor has reported. `fetch_problem` is from the last fetch."""

    approved: int = 0
    declined: int = 0
    pending: int = 0
    last_event_at: datetime | None = None
    disputes: int = 0
    waiting: int = 0
    fetched_at: datetime | None = None
    fetch_problem: str | None = None


@dataclass(frozen=True, slots=True)
class NotableEvent:
    """A processor's event that an operator should know. The amount is in cents."""

    rail: str
    kind: str
    at: datetime
    merchant_id: UUID
    order_id: UUID
    amount: int | None
    reason: str | None
    reference: str | None
    status: str | None


async def read_reports(
    session: Session, since: datetime, active: str, loaded: set[str]
) -> dict[str, RailReport]:
    """Return the reports by the rail's name: of those that are loaded, and of any other that has charges or events."""
    charges = {row["rail"]: row for row in await session.fetch(_CHARGES, since, active)}
    fetches = {row["rail"]: row for row in await session.fetch(_FETCHES)}
    found = {}
    for name in loaded | charges.keys() | fetches.keys():
        counted, fetched = charges.get(name), fetches.get(name)
        reported = await session.fetchrow(_EVENTS, name)
        found[name] = RailReport(
            *((counted["approved"], counted["declined"], counted["pending"]) if counted else (0, 0, 0)),
            *(
                (reported["last_event_at"], reported["disputes"], reported["waiting"])
                if reported
                else (None, 0, 0)
            ),
            *((fetched["fetched_at"], fetched["problem"]) if fetched else (None, None)),
        )
    return found


async def read_notable(session: Session, limit: int) -> list[NotableEvent]:
    """Return the latest events that an operator should know, newest first."""
    return [NotableEvent(*row) for row in await session.fetch(_NOTABLE, limit)]
