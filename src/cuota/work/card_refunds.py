"""The job that sends money back to cards."""

from __future__ import annotations

from cuota.flows.context import Context
from cuota.flows.order.return_money import return_money


async def return_due_money(context: Context) -> int:
    """Ask the card rail for all due card refunds. Return how many."""
    return await return_money(context)
