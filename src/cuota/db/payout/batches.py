"""Closes batches of settlement lines at the merchants' cutoffs (migration 0026)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from uuid import UUID

from cuota.core.payout.terms import SettlementTerms
from cuota.db.cluster.across import fetch_across
from cuota.db.payout import terms_row
from cuota.db.pool import Pool
from cuota.db.session import Session

# The timeout for closing a batch: the database adds up the batch's lines again, and there may be millions.
CLOSING_SECONDS = 60

_MERCHANTS_DUE = "SELECT merchant_id FROM settlements WHERE close_at <= $1 ORDER BY close_at"
_DUE = f"""SELECT s.close_at, {terms_row.COLUMNS} FROM settlements s
    LEFT JOIN LATERAL ({terms_row.AT.format("s.close_at")}) t ON true
    WHERE s.merchant_id = $1 AND s.close_at <= $2"""
_CLOSE = "SELECT close_batch($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11) AS result"


class Closing(StrEnum):
    """The possible results of the function close_batch."""

    PAID = "paid"
    CARRIED = "carried"
    PASSED = "passed"
    BEHIND = "behind"
    BUSY = "busy"


@dataclass(frozen=True, slots=True)
class DueBatch:
    """A cutoff that has passed, and the terms in force at that time."""

    cutoff: datetime
    terms: SettlementTerms


@dataclass(frozen=True, slots=True)
class ClosingRequest:
    """One closing.

    `pays` says whether the merchant is paid at this cutoff. The ids are for the payout and reserve that it may create.
    """

    merchant_id: UUID
    due: DueBatch
    next_cutoff: datetime
    pays: bool
    now: datetime
    release_at: datetime
    payout_id: UUID
    reserve_id: UUID
    arrival_date: date


async def merchants_due(session: Session, now: datetime) -> list[UUID]:
    """Return the merchants whose next cutoff has passed, the longest overdue first."""
    return [row["merchant_id"] for row in await fetch_across(session, _MERCHANTS_DUE, now)]


async def due(session: Session, merchant_id: UUID, now: datetime) -> DueBatch | None:
    """Return the merchant's next cutoff, or None if it has not passed yet."""
    row = await session.fetchrow(_DUE, merchant_id, now)
    return None if row is None else DueBatch(row["close_at"], terms_row.terms_of(row))


async def close(pool: Pool, asked: ClosingRequest) -> Closing:
    """Close the batch at this cutoff, in one transaction. The batch is closed once, whatever other workers do."""
    terms = asked.due.terms
    async with pool.session() as session:
        await session.execute(f"SET statement_timeout = '{CLOSING_SECONDS}s'")
        try:
            row = await session.fetchrow(
                _CLOSE, asked.merchant_id, asked.due.cutoff, asked.next_cutoff, asked.pays, asked.now, terms.minimum,
                terms.reserve, asked.release_at, asked.payout_id, asked.reserve_id, asked.arrival_date,
            )  # fmt: skip
        finally:
            await session.execute("RESET statement_timeout")
    assert row is not None
    return Closing(row["result"])
