"""The erased consumers whom a card processor has not deleted yet. One worker at a time calls the processor."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from cuota.db.session import Session

# The lease is longer than any call to a processor.
LEASE = timedelta(minutes=2)
FIRST_PAUSE, LONGEST_PAUSE = timedelta(minutes=1), timedelta(hours=6)

_ADD = """INSERT INTO card_erasures (rail, consumer_id, erased_at, try_at) SELECT rail, $2, $3, $3 FROM unnest($1::text[]) AS r (rail)
    ON CONFLICT (rail, consumer_id) DO UPDATE SET erased_at = excluded.erased_at, try_at = excluded.try_at, tries = 0"""
_CLAIM = """WITH due AS MATERIALIZED (
    SELECT rail, consumer_id FROM card_erasures WHERE rail = ANY ($1::text[]) AND try_at <= $2
    ORDER BY try_at LIMIT $4 FOR UPDATE SKIP LOCKED
)
UPDATE card_erasures e SET try_at = $3, tries = least(e.tries + 1, 100) FROM due
    WHERE e.rail = due.rail AND e.consumer_id = due.consumer_id AND e.try_at <= $2
RETURNING e.rail, e.consumer_id, e.erased_at, e.tries"""
_DONE = "DELETE FROM card_erasures WHERE rail = $1 AND consumer_id = $2 AND erased_at = $3"
_LATER = "UPDATE card_erasures SET try_at = $4 WHERE rail = $1 AND consumer_id = $2 AND erased_at = $3"
_WAITING = "SELECT rail FROM card_erasures WHERE consumer_id = $1 ORDER BY rail"


@dataclass(frozen=True, slots=True)
class DueErasure:
    """A claimed request to a rail's processor: delete this consumer."""

    rail: str
    consumer_id: UUID
    erased_at: datetime
    tries: int


async def add(session: Session, rails: list[str], consumer_id: UUID, now: datetime) -> None:
    """Store that each of these rails' processors must delete the consumer."""
    await session.fetch(_ADD, rails, consumer_id, now)


async def claim(session: Session, rails: list[str], now: datetime, limit: int) -> list[DueErasure]:
    """Claim at most `limit` requests that are due."""
    return [DueErasure(*row) for row in await session.fetch(_CLAIM, rails, now, now + LEASE, limit)]


async def done(session: Session, due: DueErasure) -> None:
    """Record that the processor has deleted the consumer, unless the consumer was erased again meanwhile."""
    await session.fetchrow(_DONE, due.rail, due.consumer_id, due.erased_at)


async def try_later(session: Session, due: DueErasure, now: datetime) -> None:
    """Record that the processor did not answer. The pause doubles with each attempt."""
    pause = min(FIRST_PAUSE * 2 ** min(due.tries - 1, 10), LONGEST_PAUSE)
    await session.fetchrow(_LATER, due.rail, due.consumer_id, due.erased_at, now + pause)


async def waiting(session: Session, consumer_id: UUID) -> list[str]:
    """Return the rails whose processors have not deleted this consumer yet."""
    return [row["rail"] for row in await session.fetch(_WAITING, consumer_id)]
