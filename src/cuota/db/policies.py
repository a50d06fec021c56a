"""Policies, word for word: what a decision was made under is never guessed."""

from __future__ import annotations

from cuota.db.orders import Session

_KEEP = "INSERT INTO policies (version, text) VALUES ($1, $2) ON CONFLICT (version) DO NOTHING"
_READ = "SELECT text FROM policies WHERE version = $1"


async def keep(session: Session, version: str, text: str) -> str:
    """Store a policy unless its version is there; answers the text that is stored under it."""
    await session.fetchrow(_KEEP, version, text)
    stored = await read(session, version)
    assert stored is not None
    return stored


async def read(session: Session, version: str) -> str | None:
    """The text of a version; None for one that was in force before policies were kept."""
    row = await session.fetchrow(_READ, version)
    return None if row is None else str(row["text"])
