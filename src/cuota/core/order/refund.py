"""Refund: the merchant gives back part or all of the captured amount."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime, tzinfo
from uuid import UUID

from cuota.core import money
from cuota.core.installment import NOTHING, Installment, cut, lost, next_at, room
from cuota.core.order import posting
from cuota.core.order.event import Event
from cuota.core.order.give_back import card_refunds, changed, fee_due, notice
from cuota.core.order.movement import Movement, MovementKind, MovementRequest, refuse, require_completed
from cuota.core.order.order import Order
from cuota.core.order.outcome import Outcome
from cuota.core.payout.fee import OrderFees, fee_to_return
from cuota.core.payout.terms import SettlementTerms
from cuota.core.plan.notice import NoticeKind
from cuota.core.refusal import Code

NO_FEES = OrderFees()


def refund(
    order: Order,
    plan: Sequence[Installment],
    asked: MovementRequest,
    movement_id: UUID,
    now: datetime,
    new_id: Callable[[], UUID],
    terms: Sequence[SettlementTerms] = (),
    fees: OrderFees = NO_FEES,
    taken_back: Mapping[UUID, int] = NOTHING,
    zone: tzinfo | None = None,
) -> Outcome:
    """Return the outcome of a refund: reduce the unpaid installments first, then refund to the cards. Raises Refused.

    `terms` are all versions of the merchant's terms, `fees` the merchant's fees for the order's captures. `taken_back`
    has the cents that card networks have taken back from each charge; these are not refunded. `zone` is the consumer's.
    """
    require_completed(order, MovementKind.REFUND)
    free, free_fee = room(plan, taken_back)
    most = min(order.refundable, free)
    if asked.amount > most:
        message = f"Only {money.text_of(most)} of what was captured can still be refunded."
        raise refuse(Code.REFUND_EXCEEDS_CAPTURED, message, order)
    fee = min(fee_due(order, asked.amount), free_fee)
    done = cut(plan, asked.amount, fee, taken_back)
    return Outcome(
        order=replace(
            order,
            refunded=order.refunded + asked.amount,
            fee_returned=order.fee_returned + fee,
            collect_at=next_at(done.plan),
        ),
        movement=Movement(MovementKind.REFUND, movement_id, asked.reference, asked.amount, now),
        installments=changed(plan, done.plan),
        transfers=(
            *posting.write_off_reversed(movement_id, lost(plan) - lost(done.plan)),
            *posting.refund(movement_id, done.unpaid, done.to_card),
            *posting.fee_returned(movement_id, done.fee_unpaid, done.fee_to_card),
            *posting.merchant_fee_returned(
                movement_id, fee_to_return(terms, fees, order.refunded + asked.amount)
            ),
        ),
        card_refunds=card_refunds(done, new_id),
        notices=(notice(NoticeKind.REFUNDED, asked.amount, plan, done, now, new_id(), zone),),
        events=(Event("refund.completed", asked.amount, asked.reference),),
        at=now,
    )
