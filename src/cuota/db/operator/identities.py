"""The accounts of the operator's people at their OpenID Connect provider, and sign-ins in progress.

All times are of the real clock.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from cuota.core.operator.person import Operator
from cuota.core.operator.role import OperatorRole
from cuota.db.old_rows import deleting
from cuota.db.operator.operators import operator_of
from cuota.db.session import Session

_PERSON = """SELECT p.person_id, p.email, p.name, p.role, p.invited_at, p.joined_at, p.factor IS NOT NULL AS has_factor
    FROM operator_identities i JOIN operator_people p ON p.person_id = i.person_id
    WHERE i.issuer = $1 AND i.subject = $2 AND p.removed_at IS NULL"""
_OF_PERSON = "SELECT issuer, linked_at FROM operator_identities WHERE person_id = $1 AND issuer = $2"
# The lock makes a concurrent removal of the same person wait. If the removal came first, this statement finds no person.
_LOCK = "SELECT person_id FROM operator_people WHERE person_id = $1 AND removed_at IS NULL FOR NO KEY UPDATE"
_LINK = """INSERT INTO operator_identities (issuer, subject, person_id, linked_at) VALUES ($1, $2, $3, $4)
    ON CONFLICT DO NOTHING RETURNING person_id"""
_UNLINK = "DELETE FROM operator_identities WHERE person_id = $1 RETURNING issuer"
# An owner keeps the role, whatever the provider says, because nobody else could make a person an owner.
_ROLE = """UPDATE operator_people SET role = $2
    WHERE person_id = $1 AND role <> $2 AND role <> 'owner' AND removed_at IS NULL RETURNING person_id"""
# A used visit counts toward the limit too.
_BEGIN = """INSERT INTO operator_provider_visits (browser_hash, state_hash, issuer, session_hash, address, created_at, ends_at)
    SELECT $1, $2, $3, $4, $5, $6, $7
    WHERE (SELECT count(*) FROM operator_provider_visits WHERE browser_hash = $1 AND created_at > $8) < $9
        AND ($5 = '' OR (SELECT count(*) FROM operator_provider_visits
            WHERE address = $5 AND address <> '' AND created_at > $8) < $10)
    RETURNING 1"""
_TAKE = """UPDATE operator_provider_visits SET used_at = $3
    WHERE browser_hash = $1 AND state_hash = $2 AND used_at IS NULL AND ends_at > $3 RETURNING issuer, session_hash"""
_FORGET = deleting("operator_provider_visits", "browser_hash, state_hash", "ends_at < $1")


@dataclass(frozen=True, slots=True)
class NewVisit:
    """A sign-in that a browser begins.

    `session_hash` is the hash of the session that asks for a fresh second factor, or None.
    """

    browser_hash: bytes
    state_hash: bytes
    issuer: str
    session_hash: bytes | None
    address: str
    ends_at: datetime


@dataclass(frozen=True, slots=True)
class Limits:
    """The number of visits that a browser and an IP address may begin after `since`."""

    since: datetime
    of_browser: int
    of_address: int


@dataclass(frozen=True, slots=True)
class Taken:
    """A used visit."""

    issuer: str
    session_hash: bytes | None


async def person_of(session: Session, issuer: str, subject: str) -> Operator | None:
    """Return the person with this account at the provider, or None."""
    row = await session.fetchrow(_PERSON, issuer, subject)
    return None if row is None else operator_of(row)


async def linked_at(session: Session, person_id: UUID, issuer: str) -> datetime | None:
    """Return when the person was linked with an account at this provider, or None."""
    row = await session.fetchrow(_OF_PERSON, person_id, issuer)
    return None if row is None else row["linked_at"]


async def lock_person(session: Session, person_id: UUID) -> bool:
    """Lock a person until the transaction ends. Return False if the person was removed."""
    return await session.fetchrow(_LOCK, person_id) is not None


async def link(session: Session, issuer: str, subject: str, person_id: UUID, now: datetime) -> bool:
    """Link an account with a person. Return False if the account or the person already has another link."""
    return await session.fetchrow(_LINK, issuer, subject, person_id, now) is not None


async def unlink(session: Session, person_id: UUID) -> bool:
    """Delete the person's accounts at providers. Return False if there was none."""
    return bool(await session.fetch(_UNLINK, person_id))


async def give_role(session: Session, person_id: UUID, role: OperatorRole) -> bool:
    """Give a person the role that the provider names. Return False if the person already has that role, or is an owner."""
    return await session.fetchrow(_ROLE, person_id, role) is not None


async def begin(session: Session, new: NewVisit, now: datetime, limits: Limits) -> bool:
    """Store a visit. Return False if the browser or the IP address has begun too many visits."""
    row = await session.fetchrow(
        _BEGIN, new.browser_hash, new.state_hash, new.issuer, new.session_hash, new.address, now, new.ends_at,
        limits.since, limits.of_browser, limits.of_address,
    )  # fmt: skip
    return row is not None


async def take(session: Session, browser_hash: bytes, state_hash: bytes, now: datetime) -> Taken | None:
    """Use up a visit. Return None if this browser began no such visit, used the visit before, or if the visit has expired."""
    row = await session.fetchrow(_TAKE, browser_hash, state_hash, now)
    return None if row is None else Taken(*row)


async def forget(session: Session, before: datetime) -> None:
    """Delete visits that expired before this time."""
    await session.fetch(_FORGET, before)
