"""Capture: the merchant takes part or all of the authorized amount."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from uuid import UUID

from cuota.core import money
from cuota.core.order import posting
from cuota.core.order.event import Event
from cuota.core.order.movement import (
    Movement,
    MovementKind,
    MovementRequest,
    refuse,
    require_authorization,
    require_completed,
)
from cuota.core.order.order import Order
from cuota.core.order.outcome import Outcome
from cuota.core.payout.fee import capture_fee
from cuota.core.payout.terms import SettlementTerms
from cuota.core.refusal import Code


def capture(
    order: Order,
    asked: MovementRequest,
    movement_id: UUID,
    now: datetime,
    terms: Sequence[SettlementTerms] = (),
) -> Outcome:
    """Return the outcome of a capture, which does not change the plan. `terms` are all versions of the merchant's terms. Raises Refused."""
    require_completed(order, MovementKind.CAPTURE)
    require_authorization(order, now)
    if asked.amount > order.capturable:
        message = f"Only {money.text_of(order.capturable)} of this order can still be captured."
        if order.auto_capture:
            message = "This order was captured in full at its approval (deferFundsCapture is false)."
        raise refuse(Code.CAPTURE_EXCEEDS_AUTHORIZED, message, order)
    return Outcome(
        order=replace(order, captured=order.captured + asked.amount),
        movement=Movement(MovementKind.CAPTURE, movement_id, asked.reference, asked.amount, now),
        transfers=(
            *posting.capture(movement_id, asked.amount),
            *posting.merchant_fee(movement_id, capture_fee(terms, asked.amount, now)),
        ),
        events=(Event("capture.completed", asked.amount, asked.reference),),
        at=now,
    )
