"""Reads the deliveries of one event and all their attempts, for `GET /events/{id}/deliveries`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from cuota.db.session import Session
from cuota.db.webhook.deleted_deliveries import MAY_LACK

_OF_EVENT = """SELECT receiver, url, state, tries, try_at, settled_at FROM deliveries
    WHERE merchant_id = $1 AND order_id = $2 AND sequence = $3 ORDER BY receiver"""
_ATTEMPTS = """SELECT receiver, number, at, status, ms, error, answer FROM delivery_attempts
    WHERE merchant_id = $1 AND order_id = $2 AND sequence = $3 ORDER BY at, number"""
_MAY_LACK = f"""SELECT COALESCE({MAY_LACK}, false) AS lacks FROM events e
    WHERE e.merchant_id = $1 AND e.order_id = $2 AND e.sequence = $3"""


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


@dataclass(frozen=True, slots=True)
class EventLog:
    """The deliveries of an event, and all attempts. It is not `complete` if deliveries that arrived may have been deleted."""

    deliveries: list[Delivery]
    attempts: list[AttemptRecord]
    complete: bool


async def of_event(session: Session, merchant_id: UUID, order_id: UUID, sequence: int) -> EventLog:
    """Return the deliveries of an event to all of its receivers, and all attempts."""
    key = (merchant_id, order_id, sequence)
    # The deliveries are read first. If one is deleted before the last statement, that statement says so.
    found = [Delivery(*row) for row in await session.fetch(_OF_EVENT, *key)]
    tried = [AttemptRecord(*row) for row in await session.fetch(_ATTEMPTS, *key)]
    row = await session.fetchrow(_MAY_LACK, *key)
    return EventLog(found, tried, complete=row is None or not row["lacks"])
