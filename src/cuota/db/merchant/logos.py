"""Stores the logo of a merchant, by the hash of its content."""

from __future__ import annotations

from uuid import UUID

from cuota.core.logo import Logo
from cuota.db.session import Session

_READ = "SELECT media_type, content, digest FROM merchant_logos WHERE merchant_id = $1 AND digest = $2"
_ADD = """INSERT INTO merchant_logos (merchant_id, digest, media_type, content) VALUES ($1, $2, $3, $4)
    ON CONFLICT DO NOTHING"""
_REMOVE_OTHERS = "DELETE FROM merchant_logos WHERE merchant_id = $1 AND digest <> $2"


async def read(session: Session, merchant_id: UUID, digest: str) -> Logo | None:
    """Return the merchant's logo with this digest, or None."""
    row = await session.fetchrow(_READ, merchant_id, digest)
    return None if row is None else Logo(row["media_type"], row["content"], row["digest"])


async def keep_only(session: Session, merchant_id: UUID, logo: Logo | None) -> None:
    """Store this logo, and delete every other one of the merchant. With None, delete all."""
    if logo is not None:
        await session.fetchrow(_ADD, merchant_id, logo.digest, logo.media_type, logo.content)
    await session.fetchrow(_REMOVE_OTHERS, merchant_id, logo.digest if logo else "")
