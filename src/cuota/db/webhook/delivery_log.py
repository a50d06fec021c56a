"""Reads the deliveries of one event and all their attempts, for `GET /events/{id}/deliveries`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from cuota.db.session import Session

_OF_EVENT = """SELECT receiver, url, state, tries, try_at, settled_at FROM deliveries
    WHERE merchant_id = $1 AND order_id = $2 AND sequence = $3 ORDER BY receiver"""
_ATTEMPTS = """SELECT receiver, number, at, status, ms, error, answer FROM delivery_attempts
    WHERE merchant_id = $1 AND order_id = $2 AND sequence = $3 ORDER BY at, number"""


@dataclass(frozen=True, slots=True)
class Delivery:
    """The state of the delivery of one event to one receiver."""

    receiver: UUID
    url: str
    state: str
    tries: int
    try_at: datetime | None
    settled_at: datetime | None


@dataclass(frozen=True, slots=True)
class AttemptRecord:
    """One recorded attempt."""

    receiver: UUID
    number: int
    at: datetime
    status: int | None
    ms: int
    error: str | None
    answer: bytes | None


async def of_event(
    session: Session, merchant_id: UUID, order_id: UUID, sequence: int
) -> tuple[list[Delivery], list[AttemptRecord]]:
    """Return the deliveries of an event to all of its receivers, and all attempts."""
    found = [Delivery(*row) for row in await session.fetch(_OF_EVENT, merchant_id, order_id, sequence)]
    tried = [AttemptRecord(*row) for row in await session.fetch(_ATTEMPTS, merchant_id, order_id, sequence)]
    return found, tried
