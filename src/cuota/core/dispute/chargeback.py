"""Chargebacks: the card network has taken a payment back. The network decides; Cuota records the result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from cuota.core.dispute.claims import Claims, closed, less_open, planned, resumed, shrink
from cuota.core.dispute.close_dispute import MerchantFees, lost_movement
from cuota.core.dispute.dispute import (
    Dispute,
    DisputeKind,
    DisputeOutcome,
    DisputeParty,
    DisputeReason,
    DisputeStatus,
    dispute_edge,
)
from cuota.core.dispute.pause import pause
from cuota.core.installment import Installment, next_at, owed, room
from cuota.core.order import posting
from cuota.core.order.card_refund import covered
from cuota.core.order.event import Event
from cuota.core.order.movement import Movement, MovementKind
from cuota.core.order.order import Order
from cuota.core.order.outcome import Outcome
from cuota.core.payout.fee import fee_to_return
from cuota.core.plan.notice import Notice, NoticeKind


@dataclass(frozen=True, slots=True)
class ChargebackReport:
    """The processor's report.

    `amount` is in cents; `reference` is the processor's id; `respond_by` is the network's deadline.
    """

    charge_id: UUID
    reason: DisputeReason
    amount: int
    reference: str
    respond_by: datetime


def open_chargeback(
    order: Order,
    plan: Sequence[Installment],
    report: ChargebackReport,
    claims: Claims,
    dispute_id: UUID,
    now: datetime,
) -> Outcome:
    """Record an opened chargeback: the merchant's part is withheld, and the plan is paused.

    The merchant's part is at most the captured and not refunded amount of this payment, without the part that other chargebacks of
    this payment withhold. If the consumer's own dispute withholds the same money, or claims money that the bank now has, that dispute
    is reduced by the same amount.
    """
    item = _paid_by(plan, report.charge_id)
    asked = report.amount - claims.replaced(report)
    held = sum(each.withheld for each in claims.beside(report.charge_id))
    part = max(0, min(item.amount - held, asked, order.refundable)) if item else 0
    taken = claims.taken_back
    left, _ = room(plan, {**taken, report.charge_id: taken.get(report.charge_id, 0) + asked})
    overlap = max(0, part - (order.refundable - order.disputed), order.disputed - left)
    opened = Dispute(
        dispute_id, DisputeKind.CHARGEBACK, report.reason, DisputeStatus.OPEN, report.amount, part, DisputeParty.NETWORK, now,
        report.respond_by, charge_id=report.charge_id, reference=report.reference,
    )  # fmt: skip
    paused = pause(plan) if order.paused_at is None else ()
    before = Outcome(order=order, at=now)
    shrunk = shrink(before, plan, claims, overlap, dispute_id) if overlap else before
    # If that closed the consumer's dispute, the plan has resumed. Pause it again.
    paused = pause(planned(plan, shrunk.installments)) if shrunk.order.paused_at is None else paused
    changes = planned(shrunk.installments, paused)
    return replace(
        shrunk,
        order=replace(
            shrunk.order,
            charged_back=order.charged_back + part,
            open_disputes=shrunk.order.open_disputes + 1,
            open_chargebacks=order.open_chargebacks + 1,
            paused_at=shrunk.order.paused_at or now,
            collect_at=next_at(planned(plan, changes)),
        ),
        installments=changes,
        disputes=(*shrunk.disputes, opened),
        transfers=(
            *shrunk.transfers,
            *posting.dispute_withheld(dispute_id, part),
            *posting.chargeback(dispute_id, report.amount),
        ),
        events=(*shrunk.events, Event("dispute.opened", part, str(dispute_id))),
    )


def win_chargeback(
    order: Order,
    plan: Sequence[Installment],
    dispute: Dispute,
    claims: Claims,
    now: datetime,
    new_id: Callable[[], UUID],
) -> Outcome:
    """Record a chargeback that the merchant won: the network returns the money, and the withheld amount is released.

    Raises Refused.
    """
    step = dispute_edge(dispute, "network_decides")
    release_id = new_id()
    done = replace(closed(dispute, DisputeOutcome.WON, now), release_id=release_id, decided_at=now)
    free = less_open(replace(order, charged_back=order.charged_back - dispute.withheld), dispute)
    after, moved = resumed(free, plan, claims, now)
    name = str(dispute.dispute_id)
    return Outcome(
        order=after,
        installments=moved,
        disputes=(done,),
        transfers=(
            *posting.dispute_released(release_id, dispute.withheld),
            *posting.chargeback_reversed(release_id, dispute.amount),
        ),
        events=(
            Event("dispute.won", dispute.amount, name),
            Event(step.event, dispute.withheld, name, DisputeOutcome.WON.value),
        ),
        at=now,
    )


@dataclass(frozen=True, slots=True)
class _Parts:
    """The parts of a lost chargeback in cents.

    The merchant bears the captured and the uncaptured part; Cuota bears the fee and the rest.
    """

    refunded: int
    voided: int
    fee: int
    rest: int


def _parts(order: Order, dispute: Dispute, item: Installment | None, claims: Claims) -> _Parts:
    if item is None:
        return _Parts(0, 0, 0, dispute.amount)
    missing = claims.replaced(dispute)
    amount = dispute.amount - missing
    lent = sum(each.withheld for each in claims.beside(dispute.charge_id, dispute.dispute_id))
    # This includes the amount that the merchant captured after the chargeback was opened.
    refunded = min(item.amount, amount, order.refundable + dispute.withheld + lent)
    left = amount - refunded
    voided = min(item.amount - refunded, left, order.capturable)
    fee = min(item.fee, left - voided)
    return _Parts(refunded, voided, fee, left - voided - fee + missing)


def lose_chargeback(
    order: Order,
    plan: Sequence[Installment],
    dispute: Dispute,
    claims: Claims,
    fees: MerchantFees,
    now: datetime,
    new_id: Callable[[], UUID],
) -> Outcome:
    """Record a chargeback that the consumer won; the consumer already has the money. Raises Refused.

    The captured part of the payment counts as refunded, and the uncaptured part as voided. Cuota bears the plan's fee,
    and the amount that an earlier refund returned to the consumer. The other payments keep their days. A card whose bank took a
    payment back is not charged any more (flows/plan/collect_installments.py), so the consumer is asked for another one. A refund of
    this payment that is not on the card is not sent any more, if the consumer has its amount by the chargeback.
    """
    step = dispute_edge(dispute, "network_decides")
    item = _paid_by(plan, dispute.charge_id)
    part = _parts(order, dispute, item, claims)
    cause, void_id = new_id(), new_id()
    cutting = tuple(_without(each, part) if each == item else each for each in plan)
    shrunk = _give_way(order, plan, dispute, claims, part.refunded, cause, now)
    left, moved = resumed(_after_loss(shrunk.order, dispute, part), cutting, claims, now)
    after = planned(cutting, moved)
    moves = _moves_of_loss(part, cause, void_id, now)
    released = 0 if part.refunded else dispute.withheld
    done = _lost(dispute, cause, released, now)
    earlier = claims.borne.get(dispute.charge_id, 0) if dispute.charge_id else 0
    covering, settled = covered(claims.unsent_of(dispute.charge_id), earlier + part.rest)
    return_fee = fee_to_return(fees.terms, fees.paid, order.refunded + part.refunded) if part.refunded else 0
    return Outcome(
        order=left,
        movement=moves[0] if moves else None,
        more_movements=tuple(moves[1:]),
        installments=tuple(new for old, new in zip(plan, after, strict=True) if old != new),
        disputes=(*shrunk.disputes, done),
        transfers=(
            *shrunk.transfers,
            *posting.dispute_released(cause, dispute.withheld),
            *posting.chargeback_lost(cause, part.refunded, part.fee, part.rest),
            *covering,
            *posting.chargeback_void(void_id, part.voided),
            *posting.merchant_fee_returned(cause, return_fee),
        ),
        card_refunds_settled=settled,
        notices=_ask_for_card(after, now, new_id) if dispute.charge_id in claims.of_card else (),
        events=(*shrunk.events, *_events_of_loss(dispute, moves, step.event, released)),
        at=now,
    )


def _lost(dispute: Dispute, cause: UUID, released: int, now: datetime) -> Dispute:
    return replace(
        closed(dispute, DisputeOutcome.LOST, now),
        movement_id=cause,
        release_id=cause if released else None,
        decided_at=dispute.decided_at or now,
    )


def _moves_of_loss(part: _Parts, cause: UUID, void_id: UUID, now: datetime) -> list[Movement]:
    kinds = ((MovementKind.REFUND, cause, part.refunded), (MovementKind.VOID, void_id, part.voided))
    return [lost_movement(kind, movement_id, amount, now) for kind, movement_id, amount in kinds if amount]


def _give_way(
    order: Order,
    plan: Sequence[Installment],
    dispute: Dispute,
    claims: Claims,
    refunded: int,
    cause: UUID,
    now: datetime,
) -> Outcome:
    """Release what other claims withhold of the money that a lost chargeback takes.

    Other chargebacks of the same payment come first, because all of them together withhold no more than what is left of the payment.
    Then the consumer's own dispute is reduced, as far as no other money is free.
    """
    need, lent, lenders = max(0, refunded - dispute.withheld), 0, []
    for each in claims.beside(dispute.charge_id, dispute.dispute_id):
        if part := min(need - lent, each.withheld):
            lenders.append(replace(each, withheld=each.withheld - part))
            lent += part
    before = Outcome(
        order=replace(order, charged_back=order.charged_back - lent),
        disputes=tuple(lenders),
        transfers=tuple(posting.dispute_released(cause, lent)),
        at=now,
    )
    overlap = max(0, need - lent - (order.refundable - order.disputed))
    return shrink(before, plan, claims, overlap, cause) if overlap else before


def _after_loss(order: Order, dispute: Dispute, part: _Parts) -> Order:
    return replace(
        less_open(order, dispute),
        charged_back=order.charged_back - dispute.withheld,
        refunded=order.refunded + part.refunded,
        voided=order.voided + part.voided,
        fee_returned=order.fee_returned + part.fee,
    )


def _events_of_loss(
    dispute: Dispute, moves: Sequence[Movement], closing: str, released: int
) -> tuple[Event, ...]:
    name = str(dispute.dispute_id)
    # If the merchant accepted the chargeback, this event was already written at that time.
    lost = dispute.status is not DisputeStatus.LOST
    return (
        *((Event("dispute.lost", dispute.amount, name),) if lost else ()),
        *(Event(f"{each.kind}.completed", each.amount, each.reference) for each in moves),
        Event(closing, released, name, DisputeOutcome.LOST.value),
    )


def _paid_by(plan: Sequence[Installment], charge_id: UUID | None) -> Installment | None:
    return next((item for item in plan if item.paid and item.charge_id == charge_id), None)


def _without(item: Installment, part: _Parts) -> Installment:
    """Return the installment whose payment the network took back. That amount counts as returned to the card."""
    amount = part.refunded + part.voided
    back = item.returned + amount + part.fee
    return replace(item, amount=item.amount - amount, fee=item.fee - part.fee, returned=back)


def _ask_for_card(
    plan: Sequence[Installment], now: datetime, new_id: Callable[[], UUID]
) -> tuple[Notice, ...]:
    """Ask the consumer for another card, if something is left to pay."""
    left = owed(plan)[:1]
    return tuple(
        Notice(new_id(), NoticeKind.CARD_NEEDED, item.number, item.total, item.due_on, now) for item in left
    )
