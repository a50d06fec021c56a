"""Void: releases an authorized amount that was not captured, at the merchant's request or when the authorization ends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta, tzinfo
from uuid import UUID

from cuota.core import money
from cuota.core.installment import Installment, cut, lost, next_at
from cuota.core.order import posting
from cuota.core.order.event import Event
from cuota.core.order.give_back import card_refunds, changed, fee_due, notice
from cuota.core.order.movement import (
    Movement,
    MovementKind,
    MovementRequest,
    refuse,
    require_authorization,
    require_completed,
)
from cuota.core.order.order import WARNINGS, Order
from cuota.core.order.outcome import Outcome
from cuota.core.plan.notice import NoticeKind
from cuota.core.refusal import Code

# A job runs a moment after its time. A warning that is at most this late still says 72 or 24 hours.
PUNCTUAL = timedelta(minutes=5)


def void(
    order: Order,
    plan: Sequence[Installment],
    asked: MovementRequest,
    movement_id: UUID,
    now: datetime,
    new_id: Callable[[], UUID],
    zone: tzinfo | None = None,
) -> Outcome:
    """Return the outcome of a merchant's void, which reduces the order amount and the plan. `zone` is the consumer's. Raises Refused."""
    require_completed(order, MovementKind.VOID)
    require_authorization(order, now)
    if order.open_chargebacks:
        message = "The card's bank has taken back a payment of this order. It can be voided once that chargeback is closed."
        raise refuse(Code.CHARGEBACK_OPEN, message, order)
    if asked.amount > order.capturable:
        message = f"Only {money.text_of(order.capturable)} of this order is uncaptured and can be voided."
        raise refuse(Code.VOID_EXCEEDS_UNCAPTURED, message, order)
    movement = Movement(MovementKind.VOID, movement_id, asked.reference, asked.amount, now)
    event = Event("void.completed", asked.amount, asked.reference)
    return _give_up(order, plan, movement, new_id, event, zone)


def warn(order: Order, now: datetime) -> Outcome | None:
    """Warn the merchant that the authorization ends soon. Return None if it is not time for a warning.

    A job that was stopped may be late. Then one warning, with the time that is left, replaces all whose time has passed.
    """
    ends = order.authorization_expires_at
    if ends is None or not order.capturable or now >= ends:
        return None
    warned = sum(ends - ahead <= now for ahead in WARNINGS)
    if warned <= order.warned:
        return None
    message = f"The authorization ends in {_hours(ends - now)}; what is not captured by then is released."
    event = Event("authorization.expiring", order.capturable, message=message)
    return Outcome(order=replace(order, warned=warned), events=(event,), at=now)


def _hours(left: timedelta) -> str:
    """Say how many hours are left."""
    hours = (left + PUNCTUAL) // timedelta(hours=1)
    if not hours:
        return "less than an hour"
    return "1 hour" if hours == 1 else f"{hours} hours"


def lapse(
    order: Order, plan: Sequence[Installment], movement_id: UUID, now: datetime, new_id: Callable[[], UUID]
) -> Outcome | None:
    """End an authorization: void the uncaptured rest.

    Return None if nothing is left, if the authorization has not ended, or while a chargeback is open.
    """
    if not order.capturable or order.authorization_expires_at is None or now < order.authorization_expires_at:
        return None
    if order.open_chargebacks:
        return None
    # This reference cannot equal a merchant's, which has at most 100 characters, and it never repeats.
    movement = Movement(
        MovementKind.VOID, movement_id, f"authorization-expiry-{movement_id}", order.capturable, now
    )
    event = Event("authorization.expired", order.capturable, movement.reference)
    return _give_up(replace(order, lapsed=True), plan, movement, new_id, event)


def _give_up(
    order: Order,
    plan: Sequence[Installment],
    movement: Movement,
    new_id: Callable[[], UUID],
    event: Event,
    zone: tzinfo | None = None,
) -> Outcome:
    fee = fee_due(order, movement.amount)
    done = cut(plan, movement.amount, fee)
    cause = movement.movement_id
    kind = NoticeKind.EXPIRED if order.lapsed else NoticeKind.VOIDED
    return Outcome(
        order=replace(
            order,
            voided=order.voided + movement.amount,
            fee_returned=order.fee_returned + fee,
            collect_at=next_at(done.plan),
        ),
        movement=movement,
        installments=changed(plan, done.plan),
        transfers=(
            *posting.write_off_reversed(cause, lost(plan) - lost(done.plan)),
            *posting.void(cause, done.unpaid, done.to_card, expiry=order.lapsed),
            *posting.fee_returned(cause, done.fee_unpaid, done.fee_to_card),
        ),
        card_refunds=card_refunds(done, new_id),
        notices=(notice(kind, movement.amount, plan, done, movement.at, new_id(), zone),),
        events=(event,),
        at=movement.at,
    )
