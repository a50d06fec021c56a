"""Stores merchants with their terms and secrets."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from cuota.core.credential import Scope
from cuota.core.merchant import BodyProfile, Merchant, Onboarding, OwnSettings
from cuota.db.locks import NAMES_LOCK
from cuota.db.pool import Row
from cuota.db.session import Session

# What the merchant's own people set.
OWN = "m.own_minimum, m.own_maximum, m.display_name, m.support_email, m.support_url, m.notify_email, m.logo"
# The name that consumers see.
SHOWN_NAME = "coalesce(m.display_name, m.name)"
COLUMNS = f"""m.merchant_id, m.name, m.minimum, m.maximum, m.defer_funds_capture, m.profile, m.currency, m.origins, m.onboarding,
    m.suspended_at IS NOT NULL AS suspended, {OWN}"""
_BY_CLIENT = f"""SELECT {COLUMNS}, c.revoked_at, c.scope, c.name AS credential,
    EXISTS (SELECT FROM desk_people p WHERE p.merchant_id = m.merchant_id AND p.removed_at IS NULL) AS staffed
    FROM credentials c JOIN merchants m USING (merchant_id) WHERE c.client_id = $1"""
_BY_ID = f"SELECT {COLUMNS} FROM merchants m WHERE merchant_id = $1"
_LOCK = f"{_BY_ID} FOR NO KEY UPDATE"
_BY_NAME = f"SELECT {COLUMNS} FROM merchants m WHERE lower(name) = lower($1)"
_ALL = f"SELECT {COLUMNS} FROM merchants m ORDER BY m.created_at, m.merchant_id"
_REVOKED = """SELECT merchant_id FROM merchants m
    WHERE NOT EXISTS (SELECT FROM credentials c WHERE c.merchant_id = m.merchant_id AND c.revoked_at IS NULL)"""
_INSERT = """
WITH added AS (
    INSERT INTO merchants (merchant_id, name, minimum, maximum, defer_funds_capture, profile, currency, origins,
        signing_secret, webhook_secret, created_at, onboarding)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $14) RETURNING merchant_id
)
INSERT INTO credentials (client_id, merchant_id, secret_hash, created_at) SELECT $12, merchant_id, $13, $11 FROM added
"""
_UPDATE = """
UPDATE merchants SET name = $2, minimum = $3, maximum = $4, defer_funds_capture = $5, profile = $6, origins = $7
WHERE merchant_id = $1
"""
_SET_OWN = """
UPDATE merchants SET defer_funds_capture = $2, profile = $3, own_minimum = $4, own_maximum = $5, display_name = $6,
    support_email = $7, support_url = $8, notify_email = $9, logo = $10
WHERE merchant_id = $1
"""
# Unique keys keep names different, and display names different. This finds a name that is another merchant's display name. The lock
# makes a transaction that gives the same name at this moment wait until this transaction ends.
_LOCK_NAMES = f"SELECT pg_advisory_xact_lock({NAMES_LOCK})"
# Earlier releases stored a name's spaces as they were typed.
_TAKEN = r"""SELECT 1 FROM merchants WHERE merchant_id <> $1
    AND (lower(btrim(regexp_replace(name, '\s+', ' ', 'g'))) = lower($2) OR lower(display_name) = lower($2)) LIMIT 1"""
_ORIGINS = "UPDATE merchants SET origins = $2 WHERE merchant_id = $1"
_SUSPEND = """UPDATE merchants SET suspended_at = CASE WHEN $2::timestamptz IS NOT NULL THEN coalesce(suspended_at, $2) END
    WHERE merchant_id = $1"""
_SUSPENDED_SINCE = "SELECT suspended_at FROM merchants WHERE merchant_id = $1"


def merchant_of(row: Row) -> Merchant:
    """Return a Merchant from a row."""
    return Merchant(
        merchant_id=row["merchant_id"],
        name=row["name"],
        minimum=row["minimum"],
        maximum=row["maximum"],
        defer_funds_capture=row["defer_funds_capture"],
        profile=BodyProfile(row["profile"]),
        currency=row["currency"],
        origins=tuple(row["origins"]),
        own=own_of(row),
        onboarding=Onboarding(row["onboarding"]),
        suspended=row["suspended"],
    )


def own_of(row: Row) -> OwnSettings:
    """Return what the merchant's own people set, from a row with the columns OWN."""
    return OwnSettings(
        minimum=row["own_minimum"],
        maximum=row["own_maximum"],
        display_name=row["display_name"],
        support_email=row["support_email"],
        support_url=row["support_url"],
        notify_email=row["notify_email"],
        logo=row["logo"],
    )


async def read_by_client(session: Session, client_id: str) -> tuple[Merchant, Scope, str, bool] | None:
    """Return the merchant of a credential, the credential's scope and name, and whether the dashboard has people.

    None if the credential is unknown or revoked.
    """
    row = await session.fetchrow(_BY_CLIENT, client_id)
    if row is None or row["revoked_at"] is not None:
        return None
    return merchant_of(row), Scope(row["scope"]), row["credential"], row["staffed"]


async def read(session: Session, merchant_id: UUID) -> Merchant | None:
    """Return the merchant with this id, or None."""
    row = await session.fetchrow(_BY_ID, merchant_id)
    return None if row is None else merchant_of(row)


async def lock(session: Session, merchant_id: UUID) -> Merchant | None:
    """Return the merchant with this id, or None, and lock its row until the transaction ends."""
    row = await session.fetchrow(_LOCK, merchant_id)
    return None if row is None else merchant_of(row)


async def read_by_name(session: Session, name: str) -> Merchant | None:
    """Return the merchant with this name, ignoring case, or None."""
    row = await session.fetchrow(_BY_NAME, name)
    return None if row is None else merchant_of(row)


async def read_all(session: Session) -> list[Merchant]:
    """Return all merchants, oldest first."""
    return [merchant_of(row) for row in await session.fetch(_ALL)]


async def revoked(session: Session) -> set[UUID]:
    """Return the ids of all merchants without a valid credential."""
    return {row["merchant_id"] for row in await session.fetch(_REVOKED)}


async def insert(
    session: Session,
    merchant: Merchant,
    *,
    signing_secret: bytes,
    webhook_secret: bytes,
    client_id: str,
    secret_hash: bytes,
    now: datetime,
) -> None:
    """Add a merchant with its first credential. Secrets are encrypted or hashed. Raises UniqueViolationError if the name is taken."""
    await session.fetchrow(
        _INSERT,
        merchant.merchant_id,
        merchant.name,
        merchant.minimum,
        merchant.maximum,
        merchant.defer_funds_capture,
        merchant.profile,
        merchant.currency,
        list(merchant.origins),
        signing_secret,
        webhook_secret,
        now,
        client_id,
        secret_hash,
        merchant.onboarding,
    )


async def suspend(session: Session, merchant_id: UUID, since: datetime | None) -> None:
    """Suspend a merchant's new orders, or allow them again if `since` is None. A second suspension keeps the first time."""
    await session.fetchrow(_SUSPEND, merchant_id, since)


async def suspended_since(session: Session, merchant_id: UUID) -> datetime | None:
    """Return when a merchant was suspended, or None if it is not suspended."""
    row = await session.fetchrow(_SUSPENDED_SINCE, merchant_id)
    return None if row is None else row["suspended_at"]


async def update(session: Session, merchant: Merchant) -> None:
    """Store changed terms. They apply to orders created from now on."""
    await session.fetchrow(
        _UPDATE,
        merchant.merchant_id,
        merchant.name,
        merchant.minimum,
        merchant.maximum,
        merchant.defer_funds_capture,
        merchant.profile,
        list(merchant.origins),
    )


async def set_origins(session: Session, merchant_id: UUID, origins: tuple[str, ...]) -> None:
    """Store the web origins of a merchant."""
    await session.fetchrow(_ORIGINS, merchant_id, list(origins))


async def set_own(session: Session, merchant: Merchant) -> None:
    """Store what the merchant's own people set. Raises UniqueViolationError if another merchant has the display name."""
    own = merchant.own
    await session.fetchrow(
        _SET_OWN, merchant.merchant_id, merchant.defer_funds_capture, merchant.profile, own.minimum, own.maximum,
        own.display_name, own.support_email, own.support_url, own.notify_email, own.logo,
    )  # fmt: skip


async def is_taken(session: Session, merchant_id: UUID, name: str) -> bool:
    """Return whether another merchant has this name, or shows it to consumers. Requires a transaction that then stores the name."""
    await session.fetchrow(_LOCK_NAMES)
    return await session.fetchrow(_TAKEN, merchant_id, name) is not None
