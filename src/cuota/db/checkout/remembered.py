"""Browsers that are recognized. Each has a random token for one consumer, which is stored here as a keyed hash."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from cuota.db.session import Session

_REMEMBER = """INSERT INTO remembered_browsers (token_hash, consumer_id, merchant_id, order_id, created_at, ends_at)
    VALUES ($1, $2, $3, $4, $5, $6)"""
_READ = """SELECT consumer_id, merchant_id, order_id FROM remembered_browsers
    WHERE token_hash = $1 AND ends_at > $2"""
_REVOKE = "DELETE FROM remembered_browsers WHERE token_hash = $1"
_REVOKE_ALL = "DELETE FROM remembered_browsers WHERE consumer_id = $1 RETURNING token_hash"
_COUNT = "SELECT count(*) AS browsers FROM remembered_browsers WHERE consumer_id = $1 AND ends_at > $2"
# Each row is deleted by its own statement, because the service has no right to lock rows of this table. A statement that locks
# one row at a time cannot deadlock with an erasure or with _REVOKE_ALL.
_OLD = "SELECT token_hash FROM remembered_browsers WHERE ends_at < $1"
_FORGET = "DELETE FROM remembered_browsers WHERE token_hash = $1 AND ends_at < $2"


@dataclass(frozen=True, slots=True)
class Remembered:
    """The consumer of a browser, and the latest plan from that browser. The checkout offers the card that pays this plan."""

    consumer_id: UUID
    merchant_id: UUID
    order_id: UUID


async def remember(
    session: Session, token_hash: bytes, browser: Remembered, now: datetime, ends_at: datetime
) -> None:
    """Store a browser in which an order was approved."""
    ids = (browser.consumer_id, browser.merchant_id, browser.order_id)
    await session.fetchrow(_REMEMBER, token_hash, *ids, now, ends_at)


async def read(session: Session, token_hash: bytes, now: datetime) -> Remembered | None:
    """Return the browser with this token, or None for a forged, revoked or expired token."""
    row = await session.fetchrow(_READ, token_hash, now)
    return None if row is None else Remembered(*row)


async def revoke(session: Session, token_hash: bytes) -> None:
    """Forget one browser."""
    await session.fetchrow(_REVOKE, token_hash)


async def revoke_all(session: Session, consumer_id: UUID) -> int:
    """Forget all browsers of this consumer. Return how many there were."""
    return len(await session.fetch(_REVOKE_ALL, consumer_id))


async def count(session: Session, consumer_id: UUID, now: datetime) -> int:
    """Return how many browsers recognize this consumer."""
    row = await session.fetchrow(_COUNT, consumer_id, now)
    return int(row["browsers"]) if row else 0


async def forget(session: Session, now: datetime) -> None:
    """Delete expired rows."""
    for row in await session.fetch(_OLD, now):
        await session.fetchrow(_FORGET, row["token_hash"], now)
