"""The job for virtual cards: finish interrupted card movements, lower limits after voids, hide shown numbers."""

from __future__ import annotations

from cuota.flows.checkout.clear_card import finish_clearings
from cuota.flows.checkout.issue_card import hide_cards, tell_limits
from cuota.flows.context import Context


async def settle_cards(context: Context) -> int:
    """Run all three steps. Return how many cards were handled."""
    return await finish_clearings(context) + await tell_limits(context) + await hide_cards(context)
