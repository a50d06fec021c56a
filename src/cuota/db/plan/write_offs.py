"""Finds overdue installments that must be written off, and saves write-offs."""

from __future__ import annotations

from datetime import date
from uuid import UUID

from cuota.core.order.outcome import Outcome
from cuota.db.cluster.across import fetch_across
from cuota.db.order import outcomes
from cuota.db.order.outcomes import Answer
from cuota.db.pool import Pool
from cuota.db.session import Session

_LATE = "failures > 0 AND charge_id IS NULL AND written_off_at IS NULL AND amount + fee > 0"
_MERCHANTS_DUE = f"SELECT DISTINCT merchant_id FROM installments WHERE due_on <= $1 AND {_LATE}"
_DUE = f"""SELECT DISTINCT order_id FROM installments WHERE merchant_id = $1 AND due_on <= $2 AND {_LATE} AND order_id > $3
    ORDER BY order_id LIMIT $4"""
_MARK = """UPDATE installments SET written_off_at = $4
    WHERE merchant_id = $1 AND order_id = $2 AND number = ANY ($3::smallint[])"""


async def merchants_due(session: Session, until: date) -> list[UUID]:
    """Return the merchants that have overdue installments of this day or earlier."""
    return [row["merchant_id"] for row in await fetch_across(session, _MERCHANTS_DUE, until)]


async def due(session: Session, merchant_id: UUID, until: date, after: UUID, limit: int) -> list[UUID]:
    """Return a merchant's orders that have overdue installments of this day or earlier, in the order of their ids."""
    return [row["order_id"] for row in await session.fetch(_DUE, merchant_id, until, after, limit)]


async def save(session: Session, outcome: Outcome, answer: Answer | None) -> bool:
    """Save a write-off: the ledger and the mark on the installments, in one transaction. False if the order has changed."""
    assert isinstance(session, Pool)
    order = outcome.order
    async with session.session() as connection, connection.transaction():
        if not await outcomes.save(connection, outcome, answer):
            return False
        numbers = [item.number for item in outcome.installments]
        await connection.execute(_MARK, order.merchant_id, order.order_id, numbers, outcome.at)
    return True
