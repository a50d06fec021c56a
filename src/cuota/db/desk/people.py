"""The people of a merchant's team, and their authenticator apps."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from cuota.core.desk.person import Person
from cuota.core.desk.role import Role
from cuota.db.pool import Row
from cuota.db.session import Session

_COLUMNS = """merchant_id, person_id, email, name, role, invited_at, joined_at, factor IS NOT NULL AS has_factor
    FROM desk_people"""
_ONE = f"SELECT {_COLUMNS} WHERE merchant_id = $1 AND person_id = $2 AND removed_at IS NULL"
_TEAM = f"SELECT {_COLUMNS} WHERE merchant_id = $1 AND removed_at IS NULL ORDER BY lower(name), person_id"
_BY_EMAIL = f"SELECT {_COLUMNS} WHERE email = $1 AND removed_at IS NULL ORDER BY merchant_id LIMIT 20"
_COUNT = """SELECT count(*) FILTER (WHERE removed_at IS NULL) AS team, count(*) FILTER (WHERE invited_at > $2) AS lately
    FROM desk_people WHERE merchant_id = $1"""
_ADD = """INSERT INTO desk_people (merchant_id, person_id, email, name, role, invited_at) VALUES ($1, $2, $3, $4, $5, $6)
    ON CONFLICT DO NOTHING RETURNING person_id"""
_JOINED = (
    "UPDATE desk_people SET joined_at = $3 WHERE merchant_id = $1 AND person_id = $2 AND joined_at IS NULL"
)
# These locks are held until the end of the transaction, so that two owners cannot leave at the same moment. The person who is to
# be changed, and the person who makes the change, are locked by the same statement: every statement locks people in the order of
# their ids.
_OWNERS = """SELECT person_id, role FROM desk_people
    WHERE merchant_id = $1 AND (role = 'owner' OR person_id = ANY ($2::uuid[])) AND removed_at IS NULL
    ORDER BY person_id FOR UPDATE"""
# A concurrent removal or reset of the same person waits for this lock. If the removal came first, this statement finds no person.
_LOCK = """SELECT person_id FROM desk_people WHERE merchant_id = $1 AND person_id = $2 AND removed_at IS NULL
    FOR NO KEY UPDATE"""
_ROLE = "UPDATE desk_people SET role = $3 WHERE merchant_id = $1 AND person_id = $2 AND removed_at IS NULL RETURNING 1"
_REMOVE = """UPDATE desk_people SET removed_at = $3, factor = NULL
    WHERE merchant_id = $1 AND person_id = $2 AND removed_at IS NULL RETURNING 1"""
# An attempt is counted before the code is checked, so that concurrent attempts cannot exceed the limit.
_TRY = """UPDATE desk_people SET factor_tries = CASE WHEN factor_closed_until <= $3::timestamptz THEN 1 ELSE factor_tries + 1 END,
        factor_closed_until = CASE WHEN factor_tries + 1 >= $4 AND NOT coalesce(factor_closed_until <= $3, false) THEN $5::timestamptz END
    WHERE merchant_id = $1 AND person_id = $2 AND (factor_closed_until IS NULL OR factor_closed_until <= $3)
    RETURNING factor, factor_tries"""
# The time step must rise, so a used code or an earlier one is refused.
_USED = """UPDATE desk_people SET factor_step = $3, factor_tries = 0, factor_closed_until = NULL
    WHERE merchant_id = $1 AND person_id = $2 AND factor_step < $3 RETURNING 1"""
# A person who already has an app keeps it.
_SET_UP = """UPDATE desk_people SET factor = $3, factor_step = $4, factor_tries = 0, factor_closed_until = NULL
    WHERE merchant_id = $1 AND person_id = $2 AND factor IS NULL AND removed_at IS NULL RETURNING 1"""
_RESET = """UPDATE desk_people SET factor = NULL, factor_tries = 0, factor_closed_until = NULL
    WHERE merchant_id = $1 AND person_id = $2 AND removed_at IS NULL RETURNING 1"""


@dataclass(frozen=True, slots=True)
class Factor:
    """A person's authenticator app: its encrypted secret (None before it is set up), and the attempts since the last right code."""

    secret: bytes | None
    tries: int


def person_of(row: Row) -> Person:
    """Read a person from a row with the columns of the table."""
    return Person(
        row["merchant_id"], row["person_id"], row["email"], row["name"], Role(row["role"]),
        row["invited_at"], row["joined_at"], row["has_factor"],
    )  # fmt: skip


async def read(session: Session, merchant_id: UUID, person_id: UUID) -> Person | None:
    """Return a person of the team, or None."""
    row = await session.fetchrow(_ONE, merchant_id, person_id)
    return None if row is None else person_of(row)


async def team(session: Session, merchant_id: UUID) -> list[Person]:
    """Return a merchant's team, by name."""
    return [person_of(row) for row in await session.fetch(_TEAM, merchant_id)]


async def by_email(session: Session, email: str) -> list[Person]:
    """Return the people with this mail address, one for each team."""
    return [person_of(row) for row in await session.fetch(_BY_EMAIL, email)]


async def count(session: Session, merchant_id: UUID, since: datetime) -> tuple[int, int]:
    """Return the number of people in the team, and how many were invited after `since`, even if they were removed."""
    row = await session.fetchrow(_COUNT, merchant_id, since)
    assert row is not None, "aggregates return one row"
    return row["team"], row["lately"]


async def add(session: Session, person: Person) -> bool:
    """Add a person. Return False if the team already has a person with this mail address."""
    row = await session.fetchrow(
        _ADD, person.merchant_id, person.person_id, person.email, person.name, person.role, person.invited_at
    )
    return row is not None


async def joined(session: Session, merchant_id: UUID, person_id: UUID, now: datetime) -> None:
    """Record the first time that a person signed in."""
    await session.fetchrow(_JOINED, merchant_id, person_id, now)


async def owners(session: Session, merchant_id: UUID, *person_ids: UUID) -> set[UUID]:
    """Return the owners. Lock them and these people until the transaction ends."""
    rows = await session.fetch(_OWNERS, merchant_id, person_ids)
    return {row["person_id"] for row in rows if row["role"] == Role.OWNER}


async def lock(session: Session, merchant_id: UUID, person_id: UUID) -> bool:
    """Lock a person until the transaction ends. Return False if the person was removed."""
    return await session.fetchrow(_LOCK, merchant_id, person_id) is not None


async def change_role(session: Session, merchant_id: UUID, person_id: UUID, role: Role) -> bool:
    """Give a person another role. Return False if the team has no such person."""
    return await session.fetchrow(_ROLE, merchant_id, person_id, role) is not None


async def remove(session: Session, merchant_id: UUID, person_id: UUID, now: datetime) -> bool:
    """Remove a person from the team. Return False if the team has no such person."""
    return await session.fetchrow(_REMOVE, merchant_id, person_id, now) is not None


async def try_factor(
    session: Session, merchant_id: UUID, person_id: UUID, now: datetime, most: int, closed_until: datetime
) -> Factor | None:
    """Count an attempt. Return None while the app is blocked. Attempt number `most` blocks the app until `closed_until`."""
    row = await session.fetchrow(_TRY, merchant_id, person_id, now, most, closed_until)
    return None if row is None else Factor(*row)


async def factor_used(session: Session, merchant_id: UUID, person_id: UUID, step: int) -> bool:
    """Record the time step of a right code. Return False if the code was used before."""
    return await session.fetchrow(_USED, merchant_id, person_id, step) is not None


async def set_up_factor(
    session: Session, merchant_id: UUID, person_id: UUID, secret: bytes, step: int
) -> bool:
    """Store a new app whose first code was right. Return False if the person already has an app."""
    return await session.fetchrow(_SET_UP, merchant_id, person_id, secret, step) is not None


async def reset_factor(session: Session, merchant_id: UUID, person_id: UUID) -> bool:
    """Remove a person's app, so that the next sign-in sets up another. Return False if the team has no such person."""
    return await session.fetchrow(_RESET, merchant_id, person_id) is not None
