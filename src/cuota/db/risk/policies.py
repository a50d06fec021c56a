"""The exact texts of policies, so that it is always known which rules made a decision."""

from __future__ import annotations

from cuota.db.session import Session

# The table's trigger rejects a change of a policy that has decided. This statement skips such policies, so that it does
# not fail.
_KEEP = """INSERT INTO policies AS p (version, text) VALUES ($1, $2) ON CONFLICT (version) DO UPDATE
    SET text = excluded.text, loaded_at = now() WHERE p.decided_at IS NULL AND p.text <> excluded.text"""
_SEAL = """INSERT INTO policies AS p (version, text, decided_at) VALUES ($1, $2, now()) ON CONFLICT (version) DO UPDATE
    SET decided_at = now() WHERE p.decided_at IS NULL AND p.text = excluded.text"""
_SEALED = "SELECT 1 FROM policies WHERE version = $1 AND text = $2 AND decided_at IS NOT NULL"
_READ = "SELECT text FROM policies WHERE version = $1"


async def keep(session: Session, version: str, text: str) -> str:
    """Store a policy; replace the stored text if it has decided nothing yet. Return the text stored under its version."""
    await session.fetchrow(_KEEP, version, text)
    stored = await read(session, version)
    assert stored is not None
    return stored


async def seal(session: Session, version: str, text: str) -> bool:
    """Make the version refer to this text permanently. Return False if the version has another text."""
    await session.fetchrow(_SEAL, version, text)
    return await session.fetchrow(_SEALED, version, text) is not None


async def read(session: Session, version: str) -> str | None:
    """Return the text of a version, or None if the version was in force before policies were stored."""
    row = await session.fetchrow(_READ, version)
    return None if row is None else str(row["text"])
