"""The jobs that fetch what card processors reported, and apply it."""

from __future__ import annotations

from cuota.flows.context import Context
from cuota.flows.plan.apply_card_events import apply_card_events
from cuota.flows.plan.fetch_card_events import fetch_card_events


async def apply_events(context: Context) -> int:
    """Apply the events that are due. Return how many."""
    return await apply_card_events(context)


async def fetch_events(context: Context) -> int:
    """Fetch the events of each rail that is due. Return how many were new."""
    return await fetch_card_events(context)
