"""Events of the sandbox's card processor about an order of the merchant that captures at once."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

from cuota.flows.plan.apply_card_events import apply_card_events
from cuota.flows.plan.store_card_event import store_card_event
from cuota.rails.card.protocol import CardEvent, CardEventKind
from support.own_service import Own


async def happens(own: Own, order: dict[str, Any], kind: CardEventKind, **more: Any) -> None:
    """Let the processor report an event about the order."""
    ids = own.auto_merchant.merchant_id, UUID(order["orderId"])
    event = CardEvent(f"evt_{own.context.new_id()}", kind, own.context.now(), *ids, **more)
    assert await store_card_event(own.context, "sandbox", event)
    assert await apply_card_events(own.context) == 1


async def charged_back(
    own: Own,
    order: dict[str, Any],
    name: str,
    cents: int,
    status: str,
    reason: str = "fraudulent",
    payment: int = 1,
) -> None:
    """Open the chargeback `name` of a payment, or close it as won or lost."""
    row = await own.context.pool.fetchrow("SELECT charge_id FROM charges WHERE installment = $1", payment)
    assert row is not None
    kind = CardEventKind.DISPUTE_CLOSED if status in {"won", "lost"} else CardEventKind.DISPUTE_OPENED
    ends = own.context.now() + timedelta(days=9)
    about = {"charge_id": row["charge_id"], "amount": cents, "reason": reason, "reference": name}
    await happens(own, order, kind, **about, status=status, respond_by=ends)
