"""The owners of merchants' businesses. Names and dates of birth are encrypted."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from cuota.db.session import Session

_OF = """SELECT owner_id, version, details, share, controlling FROM merchant_owners
    WHERE merchant_id = $1 AND removed_at IS NULL ORDER BY created_at, owner_id"""
_ADD = """INSERT INTO merchant_owners (merchant_id, owner_id, version, details, share, controlling, created_at)
    VALUES ($1, $2, 1, $3, $4, $5, $6) ON CONFLICT DO NOTHING RETURNING 1"""
_CHANGE = """UPDATE merchant_owners SET version = version + 1, details = $3, share = $4, controlling = $5
    WHERE merchant_id = $1 AND owner_id = $2 AND version = $6 AND removed_at IS NULL RETURNING 1"""
_REMOVE = """UPDATE merchant_owners SET removed_at = $3, version = version + 1
    WHERE merchant_id = $1 AND owner_id = $2 AND removed_at IS NULL RETURNING 1"""


@dataclass(frozen=True, slots=True)
class SealedOwner:
    """An owner whose `details` are encrypted. `share` is in basis points."""

    owner_id: UUID
    version: int
    details: bytes
    share: int
    controlling: bool


async def read_all(session: Session, merchant_id: UUID) -> list[SealedOwner]:
    """Return the owners, in the order in which they were added."""
    return [SealedOwner(*row) for row in await session.fetch(_OF, merchant_id)]


async def add(session: Session, merchant_id: UUID, owner: SealedOwner, now: datetime) -> bool:
    """Add an owner. Return False if an owner with this id already exists, for example after a double click."""
    row = await session.fetchrow(
        _ADD, merchant_id, owner.owner_id, owner.details, owner.share, owner.controlling, now
    )
    return row is not None


async def change(session: Session, merchant_id: UUID, owner: SealedOwner) -> bool:
    """Store changed details. Return False if the owner no longer has this version."""
    row = await session.fetchrow(
        _CHANGE, merchant_id, owner.owner_id, owner.details, owner.share, owner.controlling, owner.version
    )
    return row is not None


async def remove(session: Session, merchant_id: UUID, owner_id: UUID, now: datetime) -> bool:
    """Record that the person is no longer an owner. Return False if there is no owner with this id."""
    return await session.fetchrow(_REMOVE, merchant_id, owner_id, now) is not None
