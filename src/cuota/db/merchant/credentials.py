"""Stores client credentials and the token issuer's signing keys."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from cuota.core.credential import Scope
from cuota.db.old_rows import deleting
from cuota.db.pool import Row
from cuota.db.session import Session

_READ = """SELECT client_id, merchant_id, secret_hash, old_secret_hash, old_secret_ends_at, revoked_at, name, scope, created_at
    FROM credentials WHERE client_id = $1"""
_OF_MERCHANT = """SELECT client_id, merchant_id, secret_hash, old_secret_hash, old_secret_ends_at, revoked_at, name, scope, created_at
    FROM credentials WHERE merchant_id = $1 ORDER BY created_at"""
# $3 is when the old secret ends, $4 is now. If an earlier old secret is still valid, nothing is changed: it may be in use.
_ROTATE = """UPDATE credentials SET old_secret_hash = secret_hash, old_secret_ends_at = $3, secret_hash = $2
    WHERE client_id = $1
        AND (old_secret_ends_at IS NULL OR old_secret_ends_at <= $4 OR $3::timestamptz <= $4) RETURNING 1"""
_AGAIN = """UPDATE credentials SET secret_hash = $2
    WHERE client_id = $1 AND old_secret_ends_at > $3 RETURNING old_secret_ends_at AS ends_at"""
_END = """UPDATE credentials SET old_secret_hash = NULL, old_secret_ends_at = NULL
    WHERE client_id = $1 AND old_secret_ends_at > $2 RETURNING 1"""
_ADD = """INSERT INTO credentials (client_id, merchant_id, secret_hash, created_at, name, scope)
    VALUES ($1, $2, $3, $4, $5, $6)"""
# This lock is held until the end of the transaction, so that two people cannot add or revoke at the same moment.
_LOCK = "SELECT merchant_id FROM merchants WHERE merchant_id = $1 FOR NO KEY UPDATE"
_REVOKE_ONE = """UPDATE credentials SET revoked_at = $3 WHERE merchant_id = $1 AND client_id = $2 AND revoked_at IS NULL
    RETURNING 1"""
_REVOKE = (
    "UPDATE credentials SET revoked_at = $2 WHERE merchant_id = $1 AND revoked_at IS NULL RETURNING client_id"
)
_FAILED = """INSERT INTO token_failures (client_hash, minute, failures) VALUES ($1, date_trunc('minute', $2::timestamptz), 1)
    ON CONFLICT (client_hash, minute) DO UPDATE SET failures = token_failures.failures + 1"""
_FAILURES = """SELECT coalesce(sum(failures), 0) AS failures FROM token_failures
    WHERE client_hash = $1 AND minute > $2::timestamptz - interval '2 minutes'"""
_FORGET = deleting("token_failures", "client_hash, minute", "minute < $1::timestamptz - interval '5 minutes'")
# The tables of the signing keys, by algorithm.
_TABLES = {"RS256": "signing_keys", "ES256": "signing_keys_p256"}
_KEYS = " UNION ALL ".join(
    f"""SELECT key_id, '{algorithm}' AS algorithm, private_key, active_at, retired_at FROM {table}
    WHERE retired_at IS NULL OR retired_at > $1"""
    for algorithm, table in _TABLES.items()
)
_KEYS += " ORDER BY active_at, key_id"
_ADD_KEY = {
    algorithm: f"INSERT INTO {table} (key_id, private_key, active_at) VALUES ($1, $2, $3) ON CONFLICT DO NOTHING"
    for algorithm, table in _TABLES.items()
}
_RETIRE = """WITH rsa AS (UPDATE signing_keys SET retired_at = $2 WHERE key_id <> $1 AND retired_at IS NULL)
    UPDATE signing_keys_p256 SET retired_at = $2 WHERE key_id <> $1 AND retired_at IS NULL"""
_HAD_P256 = "SELECT 1 FROM signing_keys_p256 LIMIT 1"


@dataclass(frozen=True, slots=True)
class Credential:
    """A client id, its scope, and the keyed hashes of its valid secrets. During a rotation there are two.

    `name` is the merchant's own name for the credential, and may be empty.
    """

    client_id: str
    merchant_id: UUID
    secret_hash: bytes
    old_secret_hash: bytes | None
    old_secret_ends_at: datetime | None
    revoked_at: datetime | None
    name: str
    scope: Scope
    created_at: datetime


@dataclass(frozen=True, slots=True)
class StoredKey:
    """A stored, encrypted signing key. It signs from `active_at`, and verifies until `retired_at`.

    `algorithm` is RS256 or ES256.
    """

    key_id: str
    algorithm: str
    private_key: bytes
    active_at: datetime
    retired_at: datetime | None


def _credential(row: Row) -> Credential:
    return Credential(
        row["client_id"], row["merchant_id"], row["secret_hash"], row["old_secret_hash"], row["old_secret_ends_at"],
        row["revoked_at"], row["name"], Scope(row["scope"]), row["created_at"],
    )  # fmt: skip


async def read(session: Session, client_id: str) -> Credential | None:
    """Return the credential with this client id, or None."""
    row = await session.fetchrow(_READ, client_id)
    return None if row is None else _credential(row)


async def read_of_merchant(session: Session, merchant_id: UUID) -> list[Credential]:
    """Return all credentials of a merchant, oldest first."""
    return [_credential(row) for row in await session.fetch(_OF_MERCHANT, merchant_id)]


async def rotate(
    session: Session, client_id: str, secret_hash: bytes, old_ends_at: datetime, now: datetime
) -> bool:
    """Store a new secret; the previous one is valid until `old_ends_at`.

    Changes nothing and returns False if an older secret is still valid.
    """
    return await session.fetchrow(_ROTATE, client_id, secret_hash, old_ends_at, now) is not None


async def rotate_again(
    session: Session, client_id: str, secret_hash: bytes, now: datetime
) -> datetime | None:
    """Replace the last new secret by another. Return when the old secret expires, or None if there is no old secret."""
    row = await session.fetchrow(_AGAIN, client_id, secret_hash, now)
    return None if row is None else row["ends_at"]


async def end_old(session: Session, client_id: str, now: datetime) -> bool:
    """End the old secret now. Return False if there is none."""
    return await session.fetchrow(_END, client_id, now) is not None


async def add(
    session: Session,
    client_id: str,
    merchant_id: UUID,
    secret_hash: bytes,
    now: datetime,
    name: str = "",
    scope: Scope = Scope.FULL,
) -> None:
    """Add a credential."""
    await session.fetchrow(_ADD, client_id, merchant_id, secret_hash, now, name, scope)


async def lock(session: Session, merchant_id: UUID) -> None:
    """Make other changes of this merchant's credentials wait until the transaction ends."""
    await session.fetchrow(_LOCK, merchant_id)


async def revoke_one(session: Session, merchant_id: UUID, client_id: str, now: datetime) -> bool:
    """Revoke one credential. Return False if the merchant has no such valid credential."""
    return await session.fetchrow(_REVOKE_ONE, merchant_id, client_id, now) is not None


async def revoke(session: Session, merchant_id: UUID, now: datetime) -> int:
    """Revoke all credentials of a merchant. Return how many were valid."""
    return len(await session.fetch(_REVOKE, merchant_id, now))


async def failed(session: Session, client_hash: bytes, now: datetime) -> None:
    """Count a failed token request."""
    await session.fetchrow(_FAILED, client_hash, now)


async def failures(session: Session, client_hash: bytes, now: datetime) -> int:
    """Return the number of failed token requests in about the last minute, over all processes."""
    row = await session.fetchrow(_FAILURES, client_hash, now)
    return 0 if row is None else int(row["failures"])


async def forget_failures(session: Session, now: datetime) -> None:
    """Delete failures that are too old to count."""
    await session.fetchrow(_FORGET, now)


async def read_keys(session: Session, now: datetime) -> list[StoredKey]:
    """Return the signing keys that still verify, oldest first."""
    return [StoredKey(*row) for row in await session.fetch(_KEYS, now)]


async def had_p256_key(session: Session) -> bool:
    """Return whether this installation has, or has had, a signing key for ES256."""
    return await session.fetchrow(_HAD_P256) is not None


async def add_key(
    session: Session, key_id: str, algorithm: str, private_key: bytes, active_at: datetime
) -> None:
    """Add a signing key."""
    await session.fetchrow(_ADD_KEY[algorithm], key_id, private_key, active_at)


async def retire_others(session: Session, key_id: str, retired_at: datetime) -> None:
    """Let every other key verify only until this time."""
    await session.fetchrow(_RETIRE, key_id, retired_at)
