"""Claims on deliveries: which worker has claimed which delivery, and how a claim is released."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from cuota.db.cluster.across import fetch_across
from cuota.db.session import Session

# The workers that hold claims now. A partial index holds only claimed rows.
_CLAIMERS = "SELECT DISTINCT merchant_id, claimed_by FROM deliveries WHERE claimed_by > 0"
_OF_WORKER = """SELECT merchant_id, order_id, sequence, receiver, tries FROM deliveries
    WHERE claimed_by = $1 AND claimed_by > 0"""
# Releasing does not change `tries`, so the next worker continues the count. If the first worker records its result
# before the next claim, that result is still accepted.
_FREE = """UPDATE deliveries SET try_at = LEAST(created_at, $3), claimed_by = NULL
    WHERE merchant_id = $1 AND claimed_by = ANY ($2::bigint[]) AND state = 'pending' RETURNING 1"""
_LET_GO = """UPDATE deliveries d SET try_at = LEAST(d.created_at, $3), claimed_by = NULL
    FROM unnest($4::uuid[], $5::integer[], $6::uuid[], $7::smallint[]) AS c (order_id, sequence, receiver, tries)
    WHERE d.merchant_id = $1 AND d.order_id = c.order_id AND d.sequence = c.sequence AND d.receiver = c.receiver
        AND d.tries = c.tries AND d.claimed_by = $2 AND d.state = 'pending' RETURNING 1"""


class Claim(NamedTuple):
    """One claimed delivery, with the number of the attempt for which it was claimed."""

    merchant_id: UUID
    order_id: UUID
    sequence: int
    receiver: UUID
    tries: int


async def claimers(session: Session) -> list[tuple[UUID, int]]:
    """Return pairs of a merchant and a worker that holds claims on deliveries of this merchant."""
    return [(row["merchant_id"], row["claimed_by"]) for row in await fetch_across(session, _CLAIMERS)]


async def of_worker(session: Session, worker: int) -> list[Claim]:
    """Return all claims of a worker."""
    return [Claim(*row) for row in await fetch_across(session, _OF_WORKER, worker)]


async def free(session: Session, merchant_id: UUID, workers: list[int], now: datetime) -> int:
    """Release all claims of these workers; the deliveries are due now. Return how many there were."""
    return len(await session.fetch(_FREE, merchant_id, workers, now))


async def let_go(session: Session, merchant_id: UUID, worker: int, given: list[Claim], now: datetime) -> int:
    """Release these claims of one worker; the deliveries are due now. Return how many the worker still held."""
    columns = zip(*(claim[1:] for claim in given), strict=True)
    return len(await session.fetch(_LET_GO, merchant_id, worker, now, *(list(column) for column in columns)))
