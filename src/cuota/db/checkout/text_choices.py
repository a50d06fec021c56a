"""Stores by keyed hash whether the owner of a phone number has stopped text messages."""

from __future__ import annotations

from datetime import datetime

from cuota.db.session import Session

# An answer that arrives late does not overwrite a later answer.
_NOTE = """INSERT INTO text_choices AS t (phone_hash, stopped, said_at) VALUES ($1, $2, $3)
    ON CONFLICT (phone_hash) DO UPDATE SET stopped = $2, said_at = $3 WHERE t.said_at <= $3"""
_STOPPED = "SELECT stopped FROM text_choices WHERE phone_hash = $1"


async def note(session: Session, phone_hash: bytes, said_at: datetime, *, stopped: bool) -> None:
    """Record that the owner answered STOP or START."""
    await session.fetchrow(_NOTE, phone_hash, stopped, said_at)


async def is_stopped(session: Session, phone_hash: bytes) -> bool:
    """Return whether the owner has stopped texts to this number."""
    row = await session.fetchrow(_STOPPED, phone_hash)
    return row is not None and bool(row["stopped"])
