"""The row of a merchant's onboarding: its encrypted business, and whether an item waits for the operator."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from cuota.core.merchant import Onboarding
from cuota.db.session import Session

_BEGIN = "INSERT INTO merchant_onboarding (merchant_id) VALUES ($1) ON CONFLICT DO NOTHING"
# Every change of the checklist locks this row first, then the row in settlements, then the merchant's row.
_LOCK = "SELECT merchant_id FROM merchant_onboarding WHERE merchant_id = $1 FOR UPDATE"
_READ = """SELECT business, business_version, names_hash, rail, screened_at, screen_at, screen_problem
    FROM merchant_onboarding WHERE merchant_id = $1"""
_SAVE = """UPDATE merchant_onboarding SET business = $2, business_version = business_version + 1 WHERE merchant_id = $1"""
_TO_CHECK = """UPDATE merchant_onboarding SET to_check_since = CASE WHEN $2 THEN coalesce(to_check_since, $3::timestamptz) END
    WHERE merchant_id = $1"""
_COUNT_TO_CHECK = "SELECT count(*) AS merchants, min(to_check_since) AS since FROM merchant_onboarding WHERE to_check_since IS NOT NULL"
_STANDING = "SELECT onboarding FROM merchants WHERE merchant_id = $1"
_SET_STANDING = "UPDATE merchants SET onboarding = $2 WHERE merchant_id = $1"
_COUNT_OPEN = "SELECT count(*) AS merchants FROM merchants WHERE onboarding = 'open'"


@dataclass(frozen=True, slots=True)
class StoredOnboarding:
    """The stored data of a merchant's onboarding. `business` is encrypted, or None until the business is entered."""

    business: bytes | None
    version: int
    names: bytes | None
    rail: str | None
    screened_at: datetime | None
    screen_at: datetime | None
    problem: str | None


async def lock(session: Session, merchant_id: UUID) -> None:
    """Lock this merchant's checklist until the transaction ends. Other changes of the checklist wait."""
    await session.fetchrow(_BEGIN, merchant_id)
    await session.fetchrow(_LOCK, merchant_id)


async def read(session: Session, merchant_id: UUID) -> StoredOnboarding | None:
    """Return the stored data, or None if the onboarding has not begun."""
    row = await session.fetchrow(_READ, merchant_id)
    return None if row is None else StoredOnboarding(*row)


async def save_business(session: Session, merchant_id: UUID, business: bytes) -> None:
    """Store the encrypted business. The caller holds the lock."""
    await session.fetchrow(_SAVE, merchant_id, business)


async def note_to_check(session: Session, merchant_id: UUID, now: datetime, *, to_check: bool) -> None:
    """Store whether an item waits for the operator. The stored time is that of the first waiting item."""
    await session.fetchrow(_TO_CHECK, merchant_id, to_check, now)


async def count_to_check(session: Session) -> tuple[int, datetime | None]:
    """Return how many merchants have an item that waits for the operator, and since when the first merchant waits."""
    row = await session.fetchrow(_COUNT_TO_CHECK)
    return (row["merchants"], row["since"]) if row else (0, None)


async def standing(session: Session, merchant_id: UUID) -> Onboarding:
    """Return whether the merchant is approved. The approval changes only under the lock."""
    row = await session.fetchrow(_STANDING, merchant_id)
    assert row is not None
    return Onboarding(row["onboarding"])


async def set_standing(session: Session, merchant_id: UUID, new: Onboarding) -> None:
    """Approve the merchant, or withdraw the approval."""
    await session.fetchrow(_SET_STANDING, merchant_id, new)


async def count_open(session: Session) -> int:
    """Return how many merchants wait for their approval."""
    row = await session.fetchrow(_COUNT_OPEN)
    return row["merchants"] if row else 0
