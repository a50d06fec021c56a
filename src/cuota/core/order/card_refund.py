"""The result of a card refund: the card network has accepted the money, or refused it."""

from __future__ import annotations

from datetime import datetime

from cuota.core.order import posting
from cuota.core.order.job import CardRefund, JobState, Settled
from cuota.core.order.order import Order
from cuota.core.order.outcome import Outcome


def settle_card_refund(order: Order, asked: CardRefund, reason: str | None, now: datetime) -> Outcome:
    """Record the rail's answer. `reason` is None after a success. The amount of a failed refund stays owed to the consumer."""
    state = JobState.SUCCEEDED if reason is None else JobState.FAILED
    transfers = posting.card_refund(asked.card_refund_id, asked.amount) if reason is None else []
    return Outcome(
        order=order,
        transfers=tuple(transfers),
        card_refund_settled=Settled(asked.card_refund_id, state, reason),
        at=now,
    )


def fail_later(order: Order, done: CardRefund, reason: str, now: datetime) -> Outcome:
    """Record that the bank sent back a refund that had succeeded. Its amount is owed to the consumer again."""
    return Outcome(
        order=order,
        transfers=tuple(posting.card_refund_failed(done.card_refund_id, done.amount)),
        card_refund_settled=Settled(done.card_refund_id, JobState.FAILED, reason),
        at=now,
    )
