"""The job that deletes expired reservations of consumers' limits."""

from __future__ import annotations

from cuota.flows.context import Context
from cuota.flows.risk.settle_reservations import settle_reservations


async def settle_expired(context: Context) -> int:
    """Settle the reservations that have expired. Return how many."""
    return await settle_reservations(context)
