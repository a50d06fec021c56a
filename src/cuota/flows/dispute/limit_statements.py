"""The rate limit on consumers' statements in disputes: three an hour and ten a day about each order.

A statement can have files of 10 MiB. The consumer's charges and card changes are counted separately (`limit_asks.py`).
"""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from cuota.core.plan.asking import Subject
from cuota.db.plan import asks
from cuota.flows.afterwards import afterwards
from cuota.flows.context import Context


class TooManyStatements(Exception):
    """The rate limit is reached, and nothing was stored. `again_at` is when the next statement is allowed."""

    def __init__(self, again_at: datetime) -> None:
        super().__init__(again_at)
        self.again_at = again_at


async def count_statement(context: Context, order_id: UUID) -> datetime:
    """Count a statement about an order, and return the time of the count. Raises TooManyStatements."""
    now = context.now()
    again_at = await asks.ask(context.pool, _subjects(context, order_id), now)
    if again_at is not None:
        raise TooManyStatements(again_at)
    return now


async def give_back_statement(context: Context, order_id: UUID, counted_at: datetime) -> None:
    """Remove a statement from the count, because it was refused."""
    with afterwards("that a statement does not count"):
        await asks.give_back(context.pool, _subjects(context, order_id), counted_at)


def _subjects(context: Context, order_id: UUID) -> dict[Subject, bytes]:
    return {Subject.PLAN: context.vault.hash("statements-of", str(order_id))}
