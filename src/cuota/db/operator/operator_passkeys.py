"""The passkeys of the operator's people, and the challenges that their browsers answer. All times are of the real clock."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from cuota.core.desk.passkey import Passkey
from cuota.db.old_rows import deleting
from cuota.db.session import Session

_COLUMNS = "passkey_id, person_id, credential_id, public_key, sign_count, name, added_at, used_at FROM operator_passkeys"
_OF_PERSON = f"SELECT {_COLUMNS} WHERE person_id = $1 ORDER BY added_at, passkey_id LIMIT 100"
_ONE = f"SELECT {_COLUMNS} WHERE person_id = $1 AND passkey_id = $2"
_BY_CREDENTIAL = f"SELECT {_COLUMNS} WHERE person_id = $1 AND credential_id = $2"
_ADD = """INSERT INTO operator_passkeys (passkey_id, person_id, credential_id, public_key, sign_count, name, added_at)
    SELECT $1, $2, $3, $4, $5, $6, $7
    WHERE (SELECT count(*) FROM operator_passkeys WHERE person_id = $2) < $8
    ON CONFLICT DO NOTHING RETURNING passkey_id"""
_RENAME = """UPDATE operator_passkeys SET name = $3 WHERE person_id = $1 AND passkey_id = $2 RETURNING 1"""
_REMOVE = "DELETE FROM operator_passkeys WHERE person_id = $1 AND passkey_id = $2 RETURNING 1"
_REMOVE_ALL = "DELETE FROM operator_passkeys WHERE person_id = $1 RETURNING 1"
# The signature counter must rise, unless the authenticator has none. A counter that does not rise means that the passkey was
# copied.
_USED = """UPDATE operator_passkeys SET sign_count = $2, used_at = $3
    WHERE passkey_id = $1 AND (sign_count < $2 OR sign_count = 0 AND $2 = 0) RETURNING 1"""
# Used challenges count toward the limit too.
_HOLD = """INSERT INTO operator_challenges (browser_hash, challenge, purpose, address, created_at, ends_at)
    SELECT $1, $2, $3, $4, $5, $6
    WHERE (SELECT count(*) FROM operator_challenges WHERE browser_hash = $1 AND created_at > $7) < $8
        AND ($4 = '' OR (SELECT count(*) FROM operator_challenges WHERE address = $4 AND address <> '' AND created_at > $7) < $9)
    RETURNING 1"""
_TAKE = """UPDATE operator_challenges SET used_at = $4
    WHERE browser_hash = $1 AND challenge = $2 AND purpose = $3 AND used_at IS NULL AND ends_at > $4 RETURNING 1"""
_FORGET_CHALLENGES = deleting("operator_challenges", "browser_hash, challenge", "ends_at < $1")


async def of_person(session: Session, person_id: UUID) -> list[Passkey]:
    """Return a person's passkeys, the oldest first."""
    return [Passkey(*row) for row in await session.fetch(_OF_PERSON, person_id)]


async def read(session: Session, person_id: UUID, passkey_id: UUID) -> Passkey | None:
    """Return one passkey of a person, or None."""
    row = await session.fetchrow(_ONE, person_id, passkey_id)
    return None if row is None else Passkey(*row)


async def by_credential(session: Session, person_id: UUID, credential_id: bytes) -> Passkey | None:
    """Return the passkey that the authenticator names, if it is this person's."""
    row = await session.fetchrow(_BY_CREDENTIAL, person_id, credential_id)
    return None if row is None else Passkey(*row)


async def add(session: Session, new: Passkey, most: int) -> bool:
    """Add a passkey. Return False if the team already has it, or if the person has `most` passkeys."""
    row = await session.fetchrow(
        _ADD, new.passkey_id, new.person_id, new.credential_id, new.public_key, new.sign_count, new.name,
        new.added_at, most,
    )  # fmt: skip
    return row is not None


async def rename(session: Session, person_id: UUID, passkey_id: UUID, name: str) -> bool:
    """Give a passkey another name. Return False if the person has no such passkey."""
    return await session.fetchrow(_RENAME, person_id, passkey_id, name) is not None


async def remove(session: Session, person_id: UUID, passkey_id: UUID) -> bool:
    """Remove a passkey. Return False if the person has no such passkey."""
    return await session.fetchrow(_REMOVE, person_id, passkey_id) is not None


async def remove_all(session: Session, person_id: UUID) -> None:
    """Remove all passkeys of a person."""
    await session.fetch(_REMOVE_ALL, person_id)


async def used(session: Session, passkey_id: UUID, sign_count: int, now: datetime) -> bool:
    """Record a use. Return False if the counter did not rise."""
    return await session.fetchrow(_USED, passkey_id, sign_count, now) is not None


async def hold(
    session: Session,
    browser_hash: bytes,
    challenge: bytes,
    purpose: str,
    address: str,
    now: datetime,
    ends_at: datetime,
    since: datetime,
    most: int,
    most_of_address: int,
) -> bool:
    """Store a challenge. Return False if the browser or the IP address got too many challenges after `since`."""
    row = await session.fetchrow(
        _HOLD, browser_hash, challenge, purpose, address, now, ends_at, since, most, most_of_address
    )
    return row is not None


async def take(session: Session, browser_hash: bytes, challenge: bytes, purpose: str, now: datetime) -> bool:
    """Use up a challenge. Return False if this browser has no such challenge, has used it before, or if it has expired."""
    return await session.fetchrow(_TAKE, browser_hash, challenge, purpose, now) is not None


async def forget(session: Session, before: datetime) -> None:
    """Delete challenges that expired before this time."""
    await session.fetch(_FORGET_CHALLENGES, before)
