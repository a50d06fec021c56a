"""Reads and stores the installation's encrypted hash key, and reads the oldest signing key."""

from __future__ import annotations

from cuota.db.session import Session

_READ = "SELECT sealed FROM hash_key"
# If several processes start at the same moment, the first one writes the key and the others read it.
_ADD = "INSERT INTO hash_key (sealed) VALUES ($1) ON CONFLICT DO NOTHING"
_OLDEST = "SELECT key_id, private_key FROM signing_keys ORDER BY active_at LIMIT 1"


async def read(session: Session) -> bytes | None:
    """Return the encrypted hash key, or None before the first start."""
    row = await session.fetchrow(_READ)
    return None if row is None else bytes(row["sealed"])


async def add(session: Session, sealed: bytes) -> None:
    """Store the encrypted hash key, unless one is stored already."""
    await session.fetchrow(_ADD, sealed)


async def oldest_signing_key(session: Session) -> tuple[str, bytes] | None:
    """Return the id and the encrypted text of the oldest signing key, or None if the service has never started."""
    row = await session.fetchrow(_OLDEST)
    return None if row is None else (row["key_id"], bytes(row["private_key"]))
