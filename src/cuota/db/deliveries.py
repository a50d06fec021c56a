"""Deliveries: one row for each event and receiver, claimed in turn, every attempt kept."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from cuota.core.delivery import HOLDS_BACK_FOR, Attempt
from cuota.db.events import OWN_ADDRESS
from cuota.db.orders import Session

# Longer than any attempt may take: a worker that died frees what it had claimed after this.
LEASE = timedelta(seconds=40)

_MERCHANTS_DUE = "SELECT DISTINCT merchant_id FROM deliveries WHERE state = 'pending' AND try_at <= $1"
# Claimed by moving try_at on. The window takes a few for each host, so that one receiver's backlog never stands before
# the others; the UPDATE repeats the predicate, since the rows that it waits for may have been claimed meanwhile.
_CLAIM = f"""
UPDATE deliveries d SET try_at = $3, tries = d.tries + 1 FROM (
    SELECT order_id, sequence, receiver FROM (
        SELECT p.order_id, p.sequence, p.receiver, row_number() OVER (
            PARTITION BY split_part(p.url, '/', 3) ORDER BY p.position) AS turn
        FROM deliveries p WHERE p.merchant_id = $1 AND p.state = 'pending' AND p.try_at <= $2
            AND NOT split_part(p.url, '/', 3) = ANY ($4::text[])
            AND NOT EXISTS (
                SELECT FROM deliveries e WHERE e.merchant_id = $1 AND e.order_id = p.order_id
                    AND e.receiver = p.receiver AND e.sequence < p.sequence
                    AND e.state = 'pending' AND e.tries < {HOLDS_BACK_FOR})
            AND (p.receiver = $6 OR EXISTS (
                SELECT FROM webhook_endpoints w WHERE w.merchant_id = $1 AND w.endpoint_id = p.receiver
                    AND w.state = 'active'))
    ) ranked WHERE turn <= $5
) due WHERE d.merchant_id = $1 AND d.order_id = due.order_id AND d.sequence = due.sequence
    AND d.receiver = due.receiver AND d.state = 'pending' AND d.try_at <= $2
RETURNING d.merchant_id, d.order_id, d.sequence, d.receiver, d.url, d.tries
"""
# Fenced by the number of tries: a worker that was too slow records nothing over the one that took over.
_RECORD = """
WITH done AS (
    UPDATE deliveries SET state = $7::text, try_at = $8::timestamptz,
        settled_at = CASE WHEN $7::text = 'pending' THEN NULL ELSE $6::timestamptz END
    WHERE merchant_id = $1 AND order_id = $2 AND sequence = $3 AND receiver = $4 AND tries = $5 AND state = 'pending'
    RETURNING 1
)
INSERT INTO delivery_attempts (merchant_id, order_id, sequence, receiver, number, at, status, ms, error, answer)
SELECT $1::uuid, $2::uuid, $3::integer, $4::uuid, (SELECT count(*) + 1 FROM delivery_attempts a WHERE a.merchant_id = $1 AND a.order_id = $2
    AND a.sequence = $3 AND a.receiver = $4), $6::timestamptz, $9::smallint, $10::integer, $11::text, $12::bytea FROM done
"""
_OF_EVENT = """SELECT receiver, url, state, tries, try_at, settled_at FROM deliveries
    WHERE merchant_id = $1 AND order_id = $2 AND sequence = $3 ORDER BY receiver"""
_ATTEMPTS = """SELECT receiver, number, at, status, ms, error, answer FROM delivery_attempts
    WHERE merchant_id = $1 AND order_id = $2 AND sequence = $3 ORDER BY at, number"""
_AGAIN = """UPDATE deliveries SET state = 'pending', tries = 0, try_at = $2, settled_at = NULL
    WHERE merchant_id = $1 AND ($3::uuid IS NULL OR (order_id = $3 AND sequence = $4))
        AND ($5::uuid IS NULL OR receiver = $5) AND position > $6 AND position <= $7
        AND NOT (state = 'pending' AND tries > 0 AND try_at > $2) RETURNING 1"""
_PARK = """UPDATE deliveries SET state = 'parked', try_at = NULL, settled_at = $3
    WHERE merchant_id = $1 AND receiver = $2 AND state = 'pending'"""


@dataclass(frozen=True, slots=True)
class Claimed:
    """A delivery that is this worker's to try; `tries` counts this one."""

    merchant_id: UUID
    order_id: UUID
    sequence: int
    receiver: UUID
    url: str
    tries: int

    @property
    def host(self) -> str:
        """Host and port: what a slow receiver is known by."""
        return self.url.split("/")[2]


@dataclass(frozen=True, slots=True)
class Delivery:
    """How one event stands with one receiver."""

    receiver: UUID
    url: str
    state: str
    tries: int
    try_at: datetime | None
    settled_at: datetime | None


@dataclass(frozen=True, slots=True)
class Tried:
    """One attempt as it is kept."""

    receiver: UUID
    number: int
    at: datetime
    status: int | None
    ms: int
    error: str | None
    answer: bytes | None


async def merchants_due(session: Session, now: datetime) -> list[UUID]:
    """Merchants that have a delivery due."""
    return [row["merchant_id"] for row in await session.fetch(_MERCHANTS_DUE, now)]


async def claim(
    session: Session, merchant_id: UUID, now: datetime, until: datetime, busy: list[str], each: int
) -> list[Claimed]:
    """Claim up to `each` deliveries a host, none for the hosts that are `busy`."""
    rows = await session.fetch(_CLAIM, merchant_id, now, until, busy, each, OWN_ADDRESS)
    return [Claimed(*row) for row in rows]


async def record(
    session: Session, claimed: Claimed, attempt: Attempt, at: datetime, state: str, try_at: datetime | None
) -> None:
    """Keep the attempt and what follows from it."""
    await session.fetchrow(
        _RECORD,
        claimed.merchant_id, claimed.order_id, claimed.sequence, claimed.receiver, claimed.tries, at, state, try_at,
        attempt.status, attempt.ms, attempt.error, attempt.answer,
    )  # fmt: skip


async def of_event(
    session: Session, merchant_id: UUID, order_id: UUID, sequence: int
) -> tuple[list[Delivery], list[Tried]]:
    """Every receiver of an event, and every attempt."""
    found = [Delivery(*row) for row in await session.fetch(_OF_EVENT, merchant_id, order_id, sequence)]
    tried = [Tried(*row) for row in await session.fetch(_ATTEMPTS, merchant_id, order_id, sequence)]
    return found, tried


async def send_again(
    session: Session,
    merchant_id: UUID,
    now: datetime,
    *,
    event: tuple[UUID, int] | None = None,
    receiver: UUID | None = None,
    after: int = 0,
    until: int = 2**62,
) -> int:
    """Replay: by event, by receiver, by range of positions. Answers how many will be sent again."""
    order_id, sequence = event or (None, None)
    rows = await session.fetch(_AGAIN, merchant_id, now, order_id, sequence, receiver, after, until)
    return len(rows)


async def park(session: Session, merchant_id: UUID, receiver: UUID, now: datetime) -> None:
    """A receiver is gone: what waited for it is parked, not lost."""
    await session.fetchrow(_PARK, merchant_id, receiver, now)
