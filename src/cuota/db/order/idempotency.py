"""Stored responses for the Idempotency-Key header."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from cuota.db.old_rows import AT_ONCE
from cuota.db.pool import CONNECT_SECONDS, HANGS_SECONDS, WAIT_SECONDS
from cuota.db.session import Session

KEPT = timedelta(hours=24)
# The key of a crashed request is released after this time, which is longer than any statement of a running request.
LEASE = timedelta(seconds=30)
assert LEASE.total_seconds() > WAIT_SECONDS + CONNECT_SECONDS + HANGS_SECONDS
FORGOTTEN_AT_ONCE = AT_ONCE

_CLAIM = """
INSERT INTO idempotency_keys AS k (merchant_id, key, request_hash, lease, lease_ends_at, created_at)
VALUES ($1, $2, $3, $4, $6, $5)
ON CONFLICT (merchant_id, key) DO UPDATE SET request_hash = excluded.request_hash, lease = excluded.lease,
    lease_ends_at = excluded.lease_ends_at, created_at = excluded.created_at, status = NULL, body = NULL
WHERE k.created_at <= $7 OR (k.status IS NULL AND k.lease_ends_at <= $5 AND k.request_hash = excluded.request_hash)
RETURNING 1
"""
_READ = """SELECT request_hash, status, body, lease_ends_at FROM idempotency_keys
    WHERE merchant_id = $1 AND key = $2"""
_FINISH = """UPDATE idempotency_keys SET status = $4::smallint, body = $5
    WHERE merchant_id = $1 AND key = $2 AND lease = $3 AND (status IS NULL OR body = $5) RETURNING 1"""
_RELEASE = (
    "DELETE FROM idempotency_keys WHERE merchant_id = $1 AND key = $2 AND lease = $3 AND status IS NULL"
)
_FORGET = """DELETE FROM idempotency_keys k USING (
    SELECT merchant_id, key FROM idempotency_keys WHERE created_at <= $1 ORDER BY created_at LIMIT $2
) old WHERE k.merchant_id = old.merchant_id AND k.key = old.key RETURNING 1"""


@dataclass(frozen=True, slots=True)
class IdempotencyRecord:
    """The stored record of a key. `status` and `body` are set after the request was answered.

    If the process of the request died, the key is free again at `lease_ends_at`.
    """

    same_request: bool
    status: int | None
    body: bytes | None
    lease_ends_at: datetime


async def claim(
    session: Session, merchant_id: UUID, key: str, request: bytes, lease: UUID, now: datetime
) -> bool:
    """Claim the key for one request. Return False if another request has claimed the key, or if the key has a response."""
    row = await session.fetchrow(_CLAIM, merchant_id, key, request, lease, now, now + LEASE, now - KEPT)
    return row is not None


async def read(session: Session, merchant_id: UUID, key: str, request: bytes) -> IdempotencyRecord | None:
    """Return the stored record of a key, or None."""
    row = await session.fetchrow(_READ, merchant_id, key)
    if row is None:
        return None
    same = row["request_hash"] == request
    return IdempotencyRecord(same, row["status"], row["body"], row["lease_ends_at"])


async def finish(
    session: Session, merchant_id: UUID, key: str, lease: UUID, status: int, body: bytes
) -> bool:
    """Store a response that moved no money. Other responses are stored together with the money (`db/order/outcomes`).

    A second call stores nothing new. Return False if the lease was lost: the key has, or will have, the response of a retry.
    """
    return await session.fetchrow(_FINISH, merchant_id, key, lease, status, body) is not None


async def release(session: Session, merchant_id: UUID, key: str, lease: UUID) -> None:
    """Release the key, because there is no response to repeat."""
    await session.fetchrow(_RELEASE, merchant_id, key, lease)


async def forget(session: Session, now: datetime) -> int:
    """Delete records that are older than a day, at most FORGOTTEN_AT_ONCE. Return how many were deleted."""
    return len(await session.fetch(_FORGET, now - KEPT, FORGOTTEN_AT_ONCE))
