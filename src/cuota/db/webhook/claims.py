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
# Releasing does not change `tries`. The next worker continues from that number; if the first worker records its result before the
# next claim, that result is still accepted. The rows are locked in the order of their key, so that two statements never deadlock.
_HELD_ARE_FREE = """)
UPDATE deliveries d SET try_at = LEAST(d.created_at, $3), claimed_by = NULL FROM held h
    WHERE d.merchant_id = $1 AND d.order_id = h.order_id AND d.receiver = h.receiver AND d.sequence = h.sequence RETURNING 1"""
_FREE = f"""WITH held AS MATERIALIZED (
    SELECT order_id, receiver, sequence FROM deliveries
    WHERE merchant_id = $1 AND claimed_by = ANY ($2::bigint[]) AND claimed_by > 0 AND state = 'pending'
    ORDER BY order_id, receiver, sequence FOR NO KEY UPDATE
{_HELD_ARE_FREE}"""
_LET_GO = f"""WITH held AS MATERIALIZED (
    SELECT d.order_id, d.receiver, d.sequence
    FROM unnest($4::uuid[], $5::integer[], $6::uuid[], $7::smallint[]) AS c (order_id, sequence, receiver, tries)
        JOIN deliveries d ON d.merchant_id = $1 AND d.order_id = c.order_id AND d.sequence = c.sequence
        AND d.receiver = c.receiver
    WHERE d.tries = c.tries AND d.claimed_by = $2 AND d.state = 'pending'
    ORDER BY d.order_id, d.receiver, d.sequence FOR NO KEY UPDATE OF d
{_HELD_ARE_FREE}"""


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
