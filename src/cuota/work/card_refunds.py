"""Money on its way back to cards."""

from __future__ import annotations

from cuota.flows.context import Context
from cuota.flows.order.return_money import return_money


async def return_due_money(context: Context) -> int:
    """Ask the rail for what is due; answers how many."""
    return await return_money(context)
