"""The job that sends money back to cards."""

from __future__ import annotations

from cuota.flows.context import Context
from cuota.flows.order.return_money import return_money


async def return_due_money(context: Context) -> int:
    """Send all due card refunds to the card rail. Return how many there were."""
    return await return_money(context)
