"""A merchant's own two secrets, encrypted: the signing secret and the webhook secret. Two of each while it is rotated."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from uuid import UUID

from cuota.db.session import Session


class SecretKind(StrEnum):
    """Which of the two."""

    SIGNING = "signing"
    WEBHOOK = "webhook"


# $3 is when the old one ends, $4 is now. While an older one lives nothing is changed: it is the one in use.
_ROTATE = """UPDATE merchants SET {kind}_secret = $2,
    old_{kind}_secret = CASE WHEN $3::timestamptz > $4::timestamptz THEN {kind}_secret END,
    old_{kind}_secret_ends_at = CASE WHEN $3::timestamptz > $4::timestamptz THEN $3 END
    WHERE merchant_id = $1
        AND (old_{kind}_secret_ends_at IS NULL OR old_{kind}_secret_ends_at <= $4 OR $3::timestamptz <= $4) RETURNING 1"""
_AGAIN = """UPDATE merchants SET {kind}_secret = $2
    WHERE merchant_id = $1 AND old_{kind}_secret_ends_at > $3 RETURNING old_{kind}_secret_ends_at AS ends_at"""
_ENDS = "SELECT old_{kind}_secret_ends_at AS ends_at FROM merchants WHERE merchant_id = $1"
_END = """UPDATE merchants SET old_{kind}_secret = NULL, old_{kind}_secret_ends_at = NULL
    WHERE merchant_id = $1 AND old_{kind}_secret_ends_at > $2 RETURNING 1"""


async def rotate(
    session: Session, merchant_id: UUID, kind: SecretKind, secret: bytes, ends_at: datetime, now: datetime
) -> bool:
    """A new secret, and the one before it until `ends_at`; False, and nothing done, while an older one lives."""
    row = await session.fetchrow(_ROTATE.format(kind=kind), merchant_id, secret, ends_at, now)
    return row is not None


async def rotate_again(
    session: Session, merchant_id: UUID, kind: SecretKind, secret: bytes, now: datetime
) -> datetime | None:
    """Another new secret in place of the last one; when the old one ends, or None where there is none."""
    row = await session.fetchrow(_AGAIN.format(kind=kind), merchant_id, secret, now)
    return None if row is None else row["ends_at"]


async def old_ends_at(session: Session, merchant_id: UUID, kind: SecretKind) -> datetime | None:
    """When the old one ends or ended."""
    row = await session.fetchrow(_ENDS.format(kind=kind), merchant_id)
    return None if row is None else row["ends_at"]


async def end_old(session: Session, merchant_id: UUID, kind: SecretKind, now: datetime) -> bool:
    """The old one works no more; False where there is none."""
    return await session.fetchrow(_END.format(kind=kind), merchant_id, now) is not None
