"""Stores consumers by an id that is derived from their verified phone number (`db/vault`)."""

from __future__ import annotations

from uuid import UUID

from cuota.core.consumer import Consumer
from cuota.db.checkout.checkouts import profile_of
from cuota.db.session import Session

_READ = "SELECT consumer_id, phone, profile FROM consumers WHERE consumer_id = $1"


async def read(session: Session, consumer_id: UUID) -> Consumer | None:
    """Return the consumer with this id, or None."""
    row = await session.fetchrow(_READ, consumer_id)
    return None if row is None else Consumer(row["consumer_id"], row["phone"], profile_of(row["profile"]))
