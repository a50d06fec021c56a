"""The webhook endpoints that merchants registered, with their secrets encrypted."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from cuota.db.session import Session

_COLUMNS = (
    "merchant_id, endpoint_id, url, description, state, secret, old_secret, old_secret_ends_at, created_at"
)
_INSERT = f"INSERT INTO webhook_endpoints ({_COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)"
_LIST = f"""SELECT {_COLUMNS} FROM webhook_endpoints
    WHERE merchant_id = $1 AND state <> 'deleted' ORDER BY created_at, endpoint_id"""
# The merchant's row is the lock of the merchant's list. Counting is a separate statement, so that it sees the endpoints
# that other transactions added.
_LOCK_LIST = "SELECT 1 FROM merchants WHERE merchant_id = $1 FOR NO KEY UPDATE"
_COUNT = """SELECT count(*) FILTER (WHERE state <> 'deleted') AS held, count(*) FILTER (WHERE created_at > $2) AS lately
    FROM webhook_endpoints WHERE merchant_id = $1"""
_READ = f"SELECT {_COLUMNS} FROM webhook_endpoints WHERE merchant_id = $1 AND endpoint_id = $2 AND state <> 'deleted'"
_LOCK = f"{_READ} FOR NO KEY UPDATE"
_UPDATE = """UPDATE webhook_endpoints SET url = $3, description = $4, state = $5, secret = $6, old_secret = $7,
    old_secret_ends_at = $8 WHERE merchant_id = $1 AND endpoint_id = $2 AND state <> 'deleted' RETURNING 1"""
# A queue may have 500,000 deliveries, more than one statement can change in time. So a change moves, and a removal parks
# (replays.py), only the first AT_ONCE deliveries; a claim reads the endpoint's address and state (deliveries.py).
AT_ONCE = 2000
# The first $4 pending deliveries of an endpoint, locked in the order of their key, like by every statement on several deliveries.
FIRST_PENDING = """first AS MATERIALIZED (
    SELECT order_id, sequence FROM deliveries WHERE merchant_id = $1 AND receiver = $2 AND state = 'pending'
    ORDER BY host, try_at, position LIMIT $4
), held AS MATERIALIZED (
    SELECT d.order_id, d.sequence FROM (SELECT order_id, sequence FROM first ORDER BY order_id, sequence) f
        CROSS JOIN LATERAL (SELECT d.order_id, d.sequence FROM deliveries d
            WHERE d.merchant_id = $1 AND d.order_id = f.order_id AND d.receiver = $2 AND d.sequence = f.sequence
                AND d.try_at IS NOT NULL LIMIT 1 FOR NO KEY UPDATE) d
)
"""
_MOVE = f"""WITH {FIRST_PENDING}
UPDATE deliveries d SET url = $3, host = split_part($3, '/', 3)
    FROM held h WHERE d.merchant_id = $1 AND d.order_id = h.order_id AND d.receiver = $2 AND d.sequence = h.sequence"""
# The rows of removed endpoints stay, so a merchant may have very many.
_SECRETS = """SELECT w.endpoint_id, w.secret, w.old_secret, w.old_secret_ends_at, m.webhook_secret, m.signing_secret,
    m.old_webhook_secret, m.old_webhook_secret_ends_at, m.old_signing_secret, m.old_signing_secret_ends_at
    FROM merchants m LEFT JOIN webhook_endpoints w ON w.merchant_id = $1 AND w.endpoint_id = ANY ($2::uuid[])
    WHERE m.merchant_id = $1"""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A registered receiver. Its secrets are encrypted; during a rotation two are valid."""

    merchant_id: UUID
    endpoint_id: UUID
    url: str
    description: str
    state: str
    secret: bytes
    old_secret: bytes | None
    old_secret_ends_at: datetime | None
    created_at: datetime


# A secret, the previous secret, and the time at which the previous one ends.
Pair = tuple[bytes, bytes | None, datetime | None]


@dataclass(frozen=True, slots=True)
class Secrets:
    """The encrypted secrets that sign deliveries of a merchant: the merchant's own two, and one for each endpoint of the deliveries.

    During a rotation, each comes with the previous secret and the time at which the previous one ends.
    """

    webhook: Pair
    signing: Pair
    endpoints: dict[UUID, Pair]


async def lock_list(session: Session, merchant_id: UUID) -> None:
    """Lock the merchant's list until the transaction ends. Call this before `count` and `insert`."""
    await session.fetchrow(_LOCK_LIST, merchant_id)


async def count(session: Session, merchant_id: UUID, since: datetime) -> tuple[int, int]:
    """Return how many endpoints the merchant has, and how many were added after `since`, even if they were removed."""
    row = await session.fetchrow(_COUNT, merchant_id, since)
    assert row is not None, "aggregates return one row"
    return row["held"], row["lately"]


async def insert(session: Session, endpoint: Endpoint) -> None:
    """Add an endpoint to a locked list."""
    e = endpoint
    await session.fetchrow(
        _INSERT, e.merchant_id, e.endpoint_id, e.url, e.description, e.state, e.secret, e.old_secret,
        e.old_secret_ends_at, e.created_at,
    )  # fmt: skip


async def read_all(session: Session, merchant_id: UUID) -> list[Endpoint]:
    """Return a merchant's endpoints, oldest first."""
    return [Endpoint(*row) for row in await session.fetch(_LIST, merchant_id)]


async def read(session: Session, merchant_id: UUID, endpoint_id: UUID) -> Endpoint | None:
    """Return an endpoint by its id. A deleted one is not found."""
    row = await session.fetchrow(_READ, merchant_id, endpoint_id)
    return None if row is None else Endpoint(*row)


async def lock(session: Session, merchant_id: UUID, endpoint_id: UUID) -> Endpoint | None:
    """Return an endpoint and lock its row until the transaction ends.

    A change writes the whole row, so two changes must not overlap.
    """
    row = await session.fetchrow(_LOCK, merchant_id, endpoint_id)
    return None if row is None else Endpoint(*row)


async def update(session: Session, endpoint: Endpoint) -> None:
    """Write the endpoint."""
    e = endpoint
    await session.fetchrow(
        _UPDATE, e.merchant_id, e.endpoint_id, e.url, e.description, e.state, e.secret, e.old_secret,
        e.old_secret_ends_at,
    )  # fmt: skip


async def move(session: Session, endpoint: Endpoint) -> None:
    """Give the first pending deliveries the endpoint's new address. Call this in the transaction of the change."""
    await session.fetchrow(_MOVE, endpoint.merchant_id, endpoint.endpoint_id, endpoint.url, AT_ONCE)


async def secrets_of(session: Session, merchant_id: UUID, receivers: Iterable[UUID] = ()) -> Secrets:
    """Return the merchant's own secrets and those of these endpoints, even removed ones, in one round trip."""
    rows = await session.fetch(_SECRETS, merchant_id, list(receivers))
    held = {
        row["endpoint_id"]: (row["secret"], row["old_secret"], row["old_secret_ends_at"])
        for row in rows
        if row["endpoint_id"] is not None
    }
    own = rows[0]
    webhook = (own["webhook_secret"], own["old_webhook_secret"], own["old_webhook_secret_ends_at"])
    signing = (own["signing_secret"], own["old_signing_secret"], own["old_signing_secret_ends_at"])
    return Secrets(webhook, signing, held)
