"""Reads figures and events of each card rail, for the operators' command `cuota rails`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from cuota.core.plan.charge import NEVER_SENT
from cuota.db.session import Session

# Old card tokens do not name their rail. They belong to the active rail.
_RAIL = "CASE WHEN strpos(card_token, ':') > 0 THEN split_part(card_token, ':', 1) ELSE $1::text END"
_CHARGES = f"""SELECT {_RAIL} AS rail, count(*) AS charges, count(*) FILTER (
        WHERE state = 'failed' AND reason IS DISTINCT FROM '{NEVER_SENT}') AS declined
    FROM charges WHERE created_at > $2 GROUP BY 1"""
_PENDING = f"""SELECT {_RAIL} AS rail, count(*) AS waiting, min(created_at) AS since
    FROM charges WHERE state = 'pending' AND created_at <= $2 GROUP BY 1"""
_PLACES = "SELECT name, reconciled_until, problem FROM card_rails ORDER BY name"
_LAST = "SELECT max(received_at) AS at FROM card_events WHERE rail = $1"
_WAITING = "SELECT rail, count(*) AS waiting FROM card_events WHERE try_at IS NOT NULL GROUP BY rail"
# A dispute is open until an event closes it. Each dispute is shown once, as its newest event describes it.
_DISPUTES = """SELECT rail, merchant_id, order_id, kind, at, amount, reason, reference, status, event_id FROM (
    SELECT DISTINCT ON (rail, merchant_id, order_id, coalesce(reference, event_id)) e.* FROM card_events e
    WHERE kind IN ('dispute.opened', 'dispute.changed', 'dispute.closed')
    ORDER BY rail, merchant_id, order_id, coalesce(reference, event_id), kind = 'dispute.closed' DESC, at DESC
) newest WHERE kind <> 'dispute.closed' ORDER BY at DESC LIMIT $1"""
_MONEY_BACK = """SELECT rail, merchant_id, order_id, kind, at, amount, reason, reference, status, event_id FROM card_events
    WHERE kind IN ('refund.elsewhere', 'refund.failed') AND settled_at IS NULL ORDER BY at DESC LIMIT $1"""
_REFUND_EVENTS = """SELECT merchant_id, rail FROM card_events
    WHERE kind IN ('refund.elsewhere', 'refund.failed') AND event_id = $1"""
_SETTLE = """UPDATE card_events SET settled_at = $4
    WHERE merchant_id = $1 AND rail = $2 AND event_id = $3 AND settled_at IS NULL RETURNING 1"""


@dataclass(frozen=True, slots=True)
class Figures:
    """The numbers of one rail. `charges` and `declined` count the last day; `waiting` are charges without a final answer."""

    name: str
    charges: int = 0
    declined: int = 0
    waiting: int = 0
    waiting_since: datetime | None = None
    events_waiting: int = 0
    last_event_at: datetime | None = None
    reconciled_until: datetime | None = None
    problem: str | None = None


@dataclass(frozen=True, slots=True)
class Noted:
    """An event that an operator must check. The amount is in cents. `event_id` is the processor's id of the event."""

    rail: str
    merchant_id: UUID
    order_id: UUID
    kind: str
    at: datetime
    amount: int | None
    reason: str | None
    reference: str | None
    status: str | None
    event_id: str


async def figures(
    session: Session, active: str, since: datetime, asked_before: datetime
) -> dict[str, Figures]:
    """Return the numbers of each rail by name: charges after `since`, and charges before `asked_before` without an answer."""
    charged = {row["rail"]: row for row in await session.fetch(_CHARGES, active, since)}
    pending = {row["rail"]: row for row in await session.fetch(_PENDING, active, asked_before)}
    places = {row["name"]: row for row in await session.fetch(_PLACES)}
    waiting = {row["rail"]: row["waiting"] for row in await session.fetch(_WAITING)}
    names = sorted({*charged, *pending, *places, active})
    last = {name: row["at"] for name in names if (row := await session.fetchrow(_LAST, name))}

    def of(name: str) -> Figures:
        asked, open_, place = charged.get(name), pending.get(name), places.get(name)
        return Figures(
            name,
            charges=asked["charges"] if asked else 0,
            declined=asked["declined"] if asked else 0,
            waiting=open_["waiting"] if open_ else 0,
            waiting_since=open_["since"] if open_ else None,
            events_waiting=waiting.get(name, 0),
            last_event_at=last.get(name),
            reconciled_until=place["reconciled_until"] if place else None,
            problem=place["problem"] if place else None,
        )

    return {name: of(name) for name in names}


async def open_disputes(session: Session, limit: int) -> list[Noted]:
    """Return the disputes that are not closed, newest first."""
    return [Noted(*row) for row in await session.fetch(_DISPUTES, limit)]


async def money_back(session: Session, limit: int) -> list[Noted]:
    """Return the refunds that were made elsewhere or failed later, and that no operator has settled, newest first."""
    return [Noted(*row) for row in await session.fetch(_MONEY_BACK, limit)]


async def refund_events(session: Session, event_id: str) -> list[tuple[UUID, str]]:
    """Return the merchant and the rail of each such refund with this event id."""
    return [(row["merchant_id"], row["rail"]) for row in await session.fetch(_REFUND_EVENTS, event_id)]


async def settle(session: Session, merchant_id: UUID, rail: str, event_id: str, now: datetime) -> bool:
    """Mark an event as settled. Return False if it was marked before."""
    return await session.fetchrow(_SETTLE, merchant_id, rail, event_id, now) is not None
