"""Pays a checkout as the page does: the simulated processor turns the card into a token, and the form submits the token."""

from __future__ import annotations

from cuota.core.checkout.card import CardEntry
from cuota.core.order.order import Order
from cuota.db.checkout.loaded import Checkout
from cuota.flows.checkout.submit_checkout import submit_checkout
from cuota.flows.checkout.take_step import details_hash
from cuota.flows.context import Context

BACK = "http://127.0.0.1:8080/back"


async def token_of(context: Context, card: CardEntry) -> str:
    """Return the simulated processor's token of a card."""
    processor = context.rails.card.sandbox
    assert processor is not None
    return await processor.tokenize(card)


async def pay(context: Context, seen: Checkout, card: CardEntry, agreement_hash: str) -> Order:
    """Press the payment button of a checkout with this card."""
    token = await token_of(context, card)
    return await submit_checkout(context, seen, token, agreement_hash, BACK, shown_details=details_hash(seen))
