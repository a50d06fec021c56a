"""The installation's hash key, encrypted, and the oldest signing key, which tells how old an installation is."""

from __future__ import annotations

from cuota.db.session import Session

_READ = "SELECT sealed FROM hash_key"
# Of several processes that start at once one is first; the others read what it wrote.
_ADD = "INSERT INTO hash_key (sealed) VALUES ($1) ON CONFLICT DO NOTHING"
_OLDEST = "SELECT key_id, private_key FROM signing_keys ORDER BY active_at LIMIT 1"


async def read(session: Session) -> bytes | None:
    """The hash key, encrypted; None before the first start."""
    row = await session.fetchrow(_READ)
    return None if row is None else bytes(row["sealed"])


async def add(session: Session, sealed: bytes) -> None:
    """Keep it, unless there is one."""
    await session.fetchrow(_ADD, sealed)


async def oldest_signing_key(session: Session) -> tuple[str, bytes] | None:
    """Id and encrypted text; None where the service has never started."""
    row = await session.fetchrow(_OLDEST)
    return None if row is None else (row["key_id"], bytes(row["private_key"]))
