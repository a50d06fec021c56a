"""Stores each event of a card processor once. `apply_card_events.py` applies it later."""

from __future__ import annotations

from cuota.db.plan import card_events
from cuota.db.plan.card_events import NewEvent
from cuota.flows.context import Context
from cuota.rails.card.protocol import CardEvent

_LONGEST = 255


async def store_card_event(context: Context, rail: str, event: CardEvent) -> bool:
    """Store an event. Return False if it is already stored, or if its payment is not ours."""
    if event.merchant_id is None or event.order_id is None:
        return False
    card = event.card
    new = NewEvent(
        event.merchant_id, event.order_id, rail, event.event_id, event.kind, event.at, event.charge_id, event.refund_id,
        event.amount, _cut(event.reason), _cut(event.reference), _cut(event.status),
        None if card is None else f"{rail}:{card.token}", None if card is None else card.brand,
        None if card is None else card.last4, event.respond_by,
    )  # fmt: skip
    return await card_events.store(context.pool, new, context.now())


def _cut(text: str | None) -> str | None:
    return None if text is None else text[:_LONGEST]
