"""Whose phone gets no texts: what the owner of a number answered last, by its keyed hash."""

from __future__ import annotations

from datetime import datetime

from cuota.db.session import Session

# An answer that was held up on its way does not undo a later one.
_NOTE = """INSERT INTO text_choices AS t (phone_hash, stopped, said_at) VALUES ($1, $2, $3)
    ON CONFLICT (phone_hash) DO UPDATE SET stopped = $2, said_at = $3 WHERE t.said_at <= $3"""
_STOPPED = "SELECT stopped FROM text_choices WHERE phone_hash = $1"


async def note(session: Session, phone_hash: bytes, said_at: datetime, *, stopped: bool) -> None:
    """The owner answered STOP, or START."""
    await session.fetchrow(_NOTE, phone_hash, stopped, said_at)


async def is_stopped(session: Session, phone_hash: bytes) -> bool:
    """Whether texts to this number have been stopped."""
    row = await session.fetchrow(_STOPPED, phone_hash)
    return row is not None and bool(row["stopped"])
