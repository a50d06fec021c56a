"""Stores by keyed hash whether the owner of a phone number has stopped text messages."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from cuota.db.gathered import by_batches
from cuota.db.pool import Pool
from cuota.db.session import Session

# An answer that arrives late does not overwrite a later answer.
_NOTE = """INSERT INTO text_choices AS t (phone_hash, stopped, said_at) VALUES ($1, $2, $3)
    ON CONFLICT (phone_hash) DO UPDATE SET stopped = $2, said_at = $3 WHERE t.said_at <= $3"""
_STOPPED = "SELECT phone_hash FROM text_choices WHERE phone_hash = ANY ($1::bytea[]) AND stopped"


async def note(session: Session, phone_hash: bytes, said_at: datetime, *, stopped: bool) -> None:
    """Record that the owner answered STOP or START."""
    await session.fetchrow(_NOTE, phone_hash, stopped, said_at)


async def is_stopped(pool: Pool, phone_hash: bytes) -> bool:
    """Return whether the owner has stopped texts to this number. Calls that wait at the same moment share a statement."""
    return await pool.together(_CHOICES, None, phone_hash)


async def _which_stopped(session: Session, hashes: Sequence[bytes]) -> list[bool]:
    stopped = {row["phone_hash"] for row in await session.fetch(_STOPPED, hashes)}
    return [each in stopped for each in hashes]


_CHOICES = by_batches(_which_stopped, at_once=True)
