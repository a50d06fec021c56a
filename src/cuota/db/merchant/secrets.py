"""Stores a merchant's encrypted signing secret and webhook secret. During a rotation there are two of each."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from uuid import UUID

from cuota.db.session import Session


class SecretKind(StrEnum):
    """The kind of a merchant's secret."""

    SIGNING = "signing"
    WEBHOOK = "webhook"


# $3 is when the old secret ends, $4 is now. If an earlier old secret is still valid, nothing is changed: it may be in use.
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
    """Store a new secret; the previous one is valid until `ends_at`.

    Changes nothing and returns False if an older secret is still valid.
    """
    row = await session.fetchrow(_ROTATE.format(kind=kind), merchant_id, secret, ends_at, now)
    return row is not None


async def rotate_again(
    session: Session, merchant_id: UUID, kind: SecretKind, secret: bytes, now: datetime
) -> datetime | None:
    """Replace the last new secret by another. Return when the old secret expires, or None if there is no old secret."""
    row = await session.fetchrow(_AGAIN.format(kind=kind), merchant_id, secret, now)
    return None if row is None else row["ends_at"]


async def old_ends_at(session: Session, merchant_id: UUID, kind: SecretKind) -> datetime | None:
    """Return when the old secret expires or expired."""
    row = await session.fetchrow(_ENDS.format(kind=kind), merchant_id)
    return None if row is None else row["ends_at"]


async def end_old(session: Session, merchant_id: UUID, kind: SecretKind, now: datetime) -> bool:
    """End the old secret now. Return False if there is none."""
    return await session.fetchrow(_END.format(kind=kind), merchant_id, now) is not None
