"""Virtual cards: what the network began is finished, limits fall with voids, shown numbers are hidden."""

from __future__ import annotations

from cuota.flows.checkout.clear_card import finish_clearings
from cuota.flows.checkout.issue_card import hide_cards, tell_limits
from cuota.flows.context import Context


async def settle_cards(context: Context) -> int:
    """All three; answers how many."""
    return await finish_clearings(context) + await tell_limits(context) + await hide_cards(context)
