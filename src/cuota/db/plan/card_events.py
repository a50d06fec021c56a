"""Stores what card processors report: each event once, until it is applied."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from cuota.core.plan.card_event import CardEvent, CardEventKind
from cuota.db.session import Session

# A claimed event is applied again by another worker after this time, if the first one died.
LEASE = timedelta(seconds=60)

_STORE = """INSERT INTO card_events (rail, event_id, kind, at, merchant_id, order_id, charge_id, card_refund_id, amount, reason,
        reference, status, card_token, card_brand, card_last4, received_at, apply_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $16)
    ON CONFLICT (rail, event_id) DO NOTHING RETURNING 1"""
_CLAIM = """UPDATE card_events e SET apply_at = $2, tries = least(tries + 1, 1000) FROM (
        SELECT rail, event_id FROM card_events WHERE apply_at <= $1 ORDER BY apply_at LIMIT $3 FOR UPDATE SKIP LOCKED
    ) due WHERE e.rail = due.rail AND e.event_id = due.event_id AND e.apply_at <= $1
    RETURNING e.rail, e.event_id, e.kind, e.merchant_id, e.order_id, e.charge_id, e.card_token, e.card_brand, e.card_last4, e.tries"""
_APPLIED = "UPDATE card_events SET apply_at = NULL WHERE rail = $1 AND event_id = $2"
_LATER = "UPDATE card_events SET apply_at = $3 WHERE rail = $1 AND event_id = $2 AND apply_at IS NOT NULL"
_RENEW = """UPDATE plans p SET card_token = $3, card_brand = $4, card_last4 = $5
    WHERE p.merchant_id = $1 AND p.order_id = $2 AND coalesce(p.card_token, (SELECT c.card_token FROM charges c
        WHERE c.merchant_id = $1 AND c.order_id = $2 AND c.state = 'succeeded' ORDER BY c.created_at DESC LIMIT 1)) = $3"""
_FETCH_TURN = """INSERT INTO card_rails AS r (rail, fetched_until, claimed_until) VALUES ($1, $2, $4)
    ON CONFLICT (rail) DO UPDATE SET claimed_until = $4 WHERE r.claimed_until <= $3 RETURNING r.fetched_until"""
_FETCHED = """UPDATE card_rails SET fetched_until = greatest(fetched_until, $2), fetched_at = $3, claimed_until = $3, problem = NULL
    WHERE rail = $1"""
_FETCH_FAILED = "UPDATE card_rails SET claimed_until = $2, problem = $3 WHERE rail = $1"


@dataclass(frozen=True, slots=True)
class ClaimedEvent:
    """An event to apply. `card_token` names its rail, as in plans and charges."""

    rail: str
    event_id: str
    kind: CardEventKind
    merchant_id: UUID
    order_id: UUID
    charge_id: UUID | None
    card_token: str | None
    card_brand: str | None
    card_last4: str | None
    tries: int


async def store(session: Session, rail: str, event: CardEvent, now: datetime) -> bool:
    """Store an event of one of our orders. Return False if it is stored already."""
    card = event.card
    row = await session.fetchrow(
        _STORE, rail, event.event_id, str(event.kind), event.at, event.merchant_id, event.order_id, event.charge_id,
        event.refund_id, event.amount, event.reason, event.reference, event.status,
        f"{rail}:{card.token}" if card else None, card.brand if card else None, card.last4 if card else None, now,
    )  # fmt: skip
    return row is not None


async def claim(session: Session, now: datetime, limit: int) -> list[ClaimedEvent]:
    """Claim events that were not applied yet, oldest first."""
    rows = await session.fetch(_CLAIM, now, now + LEASE, limit)
    return [ClaimedEvent(row[0], row[1], CardEventKind(row[2]), *row[3:]) for row in rows]


async def applied(session: Session, event: ClaimedEvent) -> None:
    """Record that an event was applied."""
    await session.fetchrow(_APPLIED, event.rail, event.event_id)


async def later(session: Session, event: ClaimedEvent, at: datetime) -> None:
    """Apply an event again at `at`."""
    await session.fetchrow(_LATER, event.rail, event.event_id, at)


async def renew_card(session: Session, event: ClaimedEvent) -> None:
    """Give a plan the new data of its card. A plan that another card pays by now is unchanged."""
    ids = (event.merchant_id, event.order_id)
    await session.fetchrow(_RENEW, *ids, event.card_token, event.card_brand, event.card_last4)


async def take_fetch_turn(
    session: Session, rail: str, first: datetime, now: datetime, until: datetime
) -> datetime | None:
    """Claim the turn to fetch a rail's events until `until`. Return how far they were fetched; None if it is another's turn."""
    row = await session.fetchrow(_FETCH_TURN, rail, first, now, until)
    return None if row is None else row["fetched_until"]


async def fetched(session: Session, rail: str, until: datetime, now: datetime) -> None:
    """Record how far a rail's events were fetched, and end the turn."""
    await session.fetchrow(_FETCHED, rail, until, now)


async def fetch_failed(session: Session, rail: str, again_at: datetime, problem: str) -> None:
    """Record why a rail's events were not fetched."""
    await session.fetchrow(_FETCH_FAILED, rail, again_at, problem)
