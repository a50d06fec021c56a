"""Checks whether a card may be charged, or given to a plan. Its declines in all plans count, and its lost chargebacks for fraud."""

from __future__ import annotations

from cuota.core.plan.card import PlanCard
from cuota.core.plan.declines import next_allowed
from cuota.db.plan import declines
from cuota.flows.checkout.take_step import Problem
from cuota.flows.context import Context

OTHER_CARD = "This card can no longer be used; nothing was charged. Enter another card."
CHARGED_BACK = "The bank of this card took back an earlier payment, so we do not accept the card. Nothing was charged. Enter another card."


async def is_allowed(context: Context, card: PlanCard) -> bool:
    """Return whether the card may be charged, or given to a plan."""
    return await _why_not(context, card) is None


async def require_allowed(context: Context, card: PlanCard) -> None:
    """Raise Problem if the card may not be charged, or given to a plan."""
    notice = await _why_not(context, card)
    if notice is not None:
        raise Problem(notice=notice)


async def _why_not(context: Context, card: PlanCard) -> str | None:
    """Return the text for the consumer if the card is refused. For a card without a fingerprint, only its own plan knows."""
    if card.card_hash is None:
        return None
    known = await declines.of_card(context.pool, card.card_hash)
    if known.charged_back:
        return CHARGED_BACK
    refused = known.final or next_allowed(known.declined_at, context.now()) is not None
    return OTHER_CARD if refused else None
