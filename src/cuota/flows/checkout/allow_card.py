"""Checks whether the card networks allow a card to be charged now. Declines in all plans count."""

from __future__ import annotations

from cuota.core.plan.card import PlanCard
from cuota.core.plan.declines import next_allowed
from cuota.db.plan import declines
from cuota.flows.checkout.take_step import Problem
from cuota.flows.context import Context

OTHER_CARD = "This card can no longer be used; nothing was charged. Enter another card."


async def is_allowed(context: Context, card: PlanCard) -> bool:
    """Return whether the card may be charged. For a card without a fingerprint, only declines in its own plan are known."""
    if card.card_hash is None:
        return True
    known = await declines.of_card(context.pool, card.card_hash)
    return not known.final and next_allowed(known.declined_at, context.now()) is None


async def require_allowed(context: Context, card: PlanCard) -> None:
    """Raise Problem if the card may not be charged."""
    if not await is_allowed(context, card):
        raise Problem(notice=OTHER_CARD)
