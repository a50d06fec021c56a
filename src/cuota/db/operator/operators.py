"""The people of the operator's team, and their authenticator apps."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from cuota.core.operator.person import Operator
from cuota.core.operator.role import OperatorRole
from cuota.db.desk.people import Factor
from cuota.db.pool import Row
from cuota.db.session import Session

_COLUMNS = "person_id, email, name, role, invited_at, joined_at, factor IS NOT NULL AS has_factor FROM operator_people"
_ONE = f"SELECT {_COLUMNS} WHERE person_id = $1 AND removed_at IS NULL"
_TEAM = f"SELECT {_COLUMNS} WHERE removed_at IS NULL ORDER BY lower(name), person_id"
_BY_EMAIL = f"SELECT {_COLUMNS} WHERE email = $1 AND removed_at IS NULL"
_ADD = """INSERT INTO operator_people (person_id, email, name, role, invited_at) VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT DO NOTHING RETURNING person_id"""
_JOINED = "UPDATE operator_people SET joined_at = $2 WHERE person_id = $1 AND joined_at IS NULL"
# These locks are held until the end of the transaction, so that two owners cannot leave at the same moment. The person who is to
# be changed, and the person who makes the change, are locked by the same statement: every statement locks people in the order of
# their ids.
_OWNERS = """SELECT person_id, role FROM operator_people
    WHERE (role = 'owner' OR person_id = ANY ($1::uuid[])) AND removed_at IS NULL ORDER BY person_id FOR UPDATE"""
_ROLE = "UPDATE operator_people SET role = $2 WHERE person_id = $1 AND removed_at IS NULL"
_REMOVE = (
    "UPDATE operator_people SET removed_at = $2, factor = NULL WHERE person_id = $1 AND removed_at IS NULL"
)
# An attempt is counted before the code is checked, so that concurrent attempts cannot exceed the limit.
_TRY = """UPDATE operator_people SET
        factor_tries = CASE WHEN factor_closed_until <= $2::timestamptz THEN 1 ELSE factor_tries + 1 END,
        factor_closed_until = CASE WHEN factor_tries + 1 >= $3 AND NOT coalesce(factor_closed_until <= $2, false)
            THEN $4::timestamptz END
    WHERE person_id = $1 AND (factor_closed_until IS NULL OR factor_closed_until <= $2) RETURNING factor, factor_tries"""
# The time step must rise, so a used code or an earlier one is refused.
_USED = """UPDATE operator_people SET factor_step = $2, factor_tries = 0, factor_closed_until = NULL
    WHERE person_id = $1 AND factor_step < $2 RETURNING 1"""
# A person who already has an app keeps it.
_SET_UP = """UPDATE operator_people SET factor = $2, factor_step = $3, factor_tries = 0, factor_closed_until = NULL
    WHERE person_id = $1 AND factor IS NULL AND removed_at IS NULL RETURNING 1"""
_RESET = """UPDATE operator_people SET factor = NULL, factor_tries = 0, factor_closed_until = NULL
    WHERE person_id = $1 AND removed_at IS NULL"""


def operator_of(row: Row) -> Operator:
    """Read a person from a row with the columns of the table."""
    return Operator(
        row["person_id"], row["email"], row["name"], OperatorRole(row["role"]), row["invited_at"], row["joined_at"],
        row["has_factor"],
    )  # fmt: skip


async def read(session: Session, person_id: UUID) -> Operator | None:
    """Return a person of the team, or None."""
    row = await session.fetchrow(_ONE, person_id)
    return None if row is None else operator_of(row)


async def team(session: Session) -> list[Operator]:
    """Return the team, by name."""
    return [operator_of(row) for row in await session.fetch(_TEAM)]


async def by_email(session: Session, email: str) -> Operator | None:
    """Return the person with this mail address, or None."""
    row = await session.fetchrow(_BY_EMAIL, email)
    return None if row is None else operator_of(row)


async def add(session: Session, person: Operator) -> bool:
    """Add a person. Return False if the team already has a person with this mail address."""
    row = await session.fetchrow(
        _ADD, person.person_id, person.email, person.name, person.role, person.invited_at
    )
    return row is not None


async def joined(session: Session, person_id: UUID, now: datetime) -> None:
    """Record the first time that a person signed in."""
    await session.fetchrow(_JOINED, person_id, now)


async def owners(session: Session, *person_ids: UUID) -> set[UUID]:
    """Return the owners. Lock them and these people until the transaction ends."""
    rows = await session.fetch(_OWNERS, person_ids)
    return {row["person_id"] for row in rows if row["role"] == OperatorRole.OWNER}


async def change_role(session: Session, person_id: UUID, role: OperatorRole) -> None:
    """Give a person another role."""
    await session.fetchrow(_ROLE, person_id, role)


async def remove(session: Session, person_id: UUID, now: datetime) -> None:
    """Remove a person from the team."""
    await session.fetchrow(_REMOVE, person_id, now)


async def try_factor(
    session: Session, person_id: UUID, now: datetime, most: int, closed_until: datetime
) -> Factor | None:
    """Count an attempt. Return None while the app is blocked. Attempt number `most` blocks the app until `closed_until`."""
    row = await session.fetchrow(_TRY, person_id, now, most, closed_until)
    return None if row is None else Factor(*row)


async def factor_used(session: Session, person_id: UUID, step: int) -> bool:
    """Record the time step of a right code. Return False if the code was used before."""
    return await session.fetchrow(_USED, person_id, step) is not None


async def set_up_factor(session: Session, person_id: UUID, secret: bytes, step: int) -> bool:
    """Store a new app whose first code was right. Return False if the person already has an app."""
    return await session.fetchrow(_SET_UP, person_id, secret, step) is not None


async def reset_factor(session: Session, person_id: UUID) -> None:
    """Remove a person's app, so that the next sign-in sets up another."""
    await session.fetchrow(_RESET, person_id)
