"""Who has which delivery under way: claims by the names of workers, and claims that are given back."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from cuota.db.session import Session

# Who has something under way now: an index over that alone.
_CLAIMERS = "SELECT DISTINCT merchant_id, claimed_by FROM deliveries WHERE claimed_by > 0"
_OF_WORKER = """SELECT merchant_id, order_id, sequence, receiver, tries FROM deliveries
    WHERE claimed_by = $1 AND claimed_by > 0"""
# The try stays counted: whoever takes it over counts on, and an answer that comes before that is still recorded.
_FREE = """UPDATE deliveries SET try_at = LEAST(created_at, $3), claimed_by = NULL
    WHERE merchant_id = $1 AND claimed_by = ANY ($2::bigint[]) AND state = 'pending' RETURNING 1"""
_LET_GO = """UPDATE deliveries d SET try_at = LEAST(d.created_at, $3), claimed_by = NULL
    FROM unnest($4::uuid[], $5::integer[], $6::uuid[], $7::smallint[]) AS c (order_id, sequence, receiver, tries)
    WHERE d.merchant_id = $1 AND d.order_id = c.order_id AND d.sequence = c.sequence AND d.receiver = c.receiver
        AND d.tries = c.tries AND d.claimed_by = $2 AND d.state = 'pending' RETURNING 1"""


class Claim(NamedTuple):
    """A delivery, and the try for which it was claimed."""

    merchant_id: UUID
    order_id: UUID
    sequence: int
    receiver: UUID
    tries: int


async def claimers(session: Session) -> list[tuple[UUID, int]]:
    """Merchants, and the names of the workers that have something of theirs under way."""
    return [(row["merchant_id"], row["claimed_by"]) for row in await session.fetch(_CLAIMERS)]


async def of_worker(session: Session, worker: int) -> list[Claim]:
    """All that is claimed in this worker's name."""
    return [Claim(*row) for row in await session.fetch(_OF_WORKER, worker)]


async def free(session: Session, merchant_id: UUID, workers: list[int], now: datetime) -> int:
    """What these workers had claimed is due now; answers how much that was."""
    return len(await session.fetch(_FREE, merchant_id, workers, now))


async def let_go(session: Session, merchant_id: UUID, worker: int, given: list[Claim], now: datetime) -> int:
    """These claims of one worker are due now; answers how many still were its own."""
    columns = zip(*(claim[1:] for claim in given), strict=True)
    return len(await session.fetch(_LET_GO, merchant_id, worker, now, *(list(column) for column in columns)))
