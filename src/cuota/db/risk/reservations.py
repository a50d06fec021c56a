"""Reserves parts of a consumer's limit. A reservation counts as owed until its order is seen in the consumer's history.

docs/decisions/exposure.md explains why the limit is never exceeded. Each call is one statement on one server.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from cuota.db.session import Session

# This is longer than the time from a reservation to the save of its order. After a crash, other orders of the consumer count the
# reservation for this long.
HOLDS_SECONDS = 30

_RESERVE = "SELECT reserve_exposure($1, $2, $3, $4, $5, $6) AS reserved"
_FINISH = "SELECT finish_reservation($1, $2, $3) AS finished"
_EXPIRED = """SELECT consumer_id, ticket, merchant_id, order_id, expires_at FROM consumer_reservations
    WHERE expires_at <= now() ORDER BY expires_at LIMIT $1"""
_OF_CONSUMER = """SELECT ticket, merchant_id, order_id, amount FROM consumer_reservations
    WHERE consumer_id = $1 ORDER BY ticket"""
_OPEN = "SELECT count(*) AS reservations FROM consumer_reservations WHERE consumer_id = $1"


@dataclass(frozen=True, slots=True)
class Reserved:
    """A ticket, and the amounts (in cents) that are reserved with lower tickets, by order; without the ticket's own order."""

    ticket: int
    earlier: dict[UUID, int]


@dataclass(frozen=True, slots=True)
class Expired:
    """A reservation that was not deleted in time."""

    consumer_id: UUID
    ticket: int
    merchant_id: UUID
    order_id: UUID
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class Reservation:
    """A reservation: an order of a consumer that is being decided, or was when its process crashed. The amount is in cents."""

    ticket: int
    merchant_id: UUID
    order_id: UUID
    amount: int


async def reserve(
    session: Session, consumer_id: UUID, merchant_id: UUID, order_id: UUID, amount: int, held: int | None
) -> Reserved:
    """Reserve an order's amount, or renew the reservation with the ticket `held` if it still exists.

    The caller must have read the order before this call, and must read the consumer's history after it.
    """
    row = await session.fetchrow(_RESERVE, consumer_id, merchant_id, order_id, amount, HOLDS_SECONDS, held)
    assert row is not None, "a SELECT of one function call returns one row"
    found = json.loads(row["reserved"])
    # If the button was pressed twice for one order, there are two reservations; the order counts once.
    return Reserved(found["ticket"], {UUID(order): cents for order, cents in found["earlier"] or ()})


async def finish(session: Session, consumer_id: UUID, ticket: int, seen: datetime | None = None) -> bool:
    """Delete a reservation. With `seen`, only if it still expires at that time. Return whether it was deleted."""
    row = await session.fetchrow(_FINISH, consumer_id, ticket, seen)
    return row is not None and bool(row["finished"])


async def expired(session: Session, limit: int) -> list[Expired]:
    """Return reservations that have expired, the oldest first."""
    return [Expired(**row) for row in await session.fetch(_EXPIRED, limit)]


async def of_consumer(session: Session, consumer_id: UUID) -> list[Reservation]:
    """Return a consumer's reservations, in the order in which they were made. An expired one counts until a job has checked its order."""
    return [Reservation(**row) for row in await session.fetch(_OF_CONSUMER, consumer_id)]


async def count(session: Session, consumer_id: UUID) -> int:
    """Return how many reservations a consumer has."""
    row = await session.fetchrow(_OPEN, consumer_id)
    return 0 if row is None else int(row["reservations"])
