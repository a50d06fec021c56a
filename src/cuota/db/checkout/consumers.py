"""Stores consumers by an id that is derived from their verified phone number (`db/vault`)."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from cuota.core.consumer import Consumer, Profile
from cuota.db.checkout.checkouts import profile_of, profile_text
from cuota.db.session import Session

_READ = "SELECT consumer_id, phone, profile FROM consumers WHERE consumer_id = $1"
_SAVE = """INSERT INTO consumers (consumer_id, phone, profile, created_at, updated_at) VALUES ($1, $2, $3::json, $4, $4)
    ON CONFLICT (consumer_id) DO UPDATE SET profile = excluded.profile, updated_at = excluded.updated_at"""


async def read(session: Session, consumer_id: UUID) -> Consumer | None:
    """Return the consumer with this id, or None."""
    row = await session.fetchrow(_READ, consumer_id)
    return None if row is None else Consumer(row["consumer_id"], row["phone"], profile_of(row["profile"]))


async def save(session: Session, consumer_id: UUID, phone: str, profile: Profile, now: datetime) -> None:
    """Store the consumer's details for the next visit."""
    await session.fetchrow(_SAVE, consumer_id, phone, profile_text(profile), now)
