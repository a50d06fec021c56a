"""The events that a card processor reports."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from cuota.core.plan.card import Card


class CardEventKind(StrEnum):
    """The kinds of events."""

    CHARGE_CHANGED = "charge.changed"  # the charge succeeded or failed; the service then looks it up
    REFUNDED_ELSEWHERE = (
        "refund.elsewhere"  # a refund that the service did not make, for example in the processor's dashboard
    )
    REFUND_FAILED = "refund.failed"  # the bank sent a refund back
    CARD_UPDATED = "card.updated"  # the card was replaced by its bank; the token stays the same
    DISPUTE_OPENED = "dispute.opened"
    DISPUTE_CHANGED = "dispute.changed"
    DISPUTE_CLOSED = "dispute.closed"


@dataclass(frozen=True, slots=True)
class CardEvent:
    """Something that happened at the processor. `event_id` is the processor's id: an event that arrives twice has the same id.

    `merchant_id`, `order_id` and `charge_id` are those of the request of the charge (or of the card's holder). They are
    None if the processor does not report them, which means that the payment was not ours. `amount` is in cents.
    `reference` is the processor's id of a refund or a dispute, and `status` the processor's own name for the state.
    `respond_by` is the card network's deadline for evidence. `card` is the renewed card.
    """

    event_id: str
    kind: CardEventKind
    at: datetime
    merchant_id: UUID | None = None
    order_id: UUID | None = None
    charge_id: UUID | None = None
    refund_id: UUID | None = None
    amount: int | None = None
    reason: str | None = None
    reference: str | None = None
    status: str | None = None
    respond_by: datetime | None = None
    card: Card | None = None
