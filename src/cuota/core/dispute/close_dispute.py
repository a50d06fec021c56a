"""Closes a dispute: the withheld money goes back to the merchant, or to the consumer as a refund. The plan continues."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from cuota.core.dispute.claims import Claims, closed, less_open, planned, resumed
from cuota.core.dispute.dispute import Dispute, DisputeKind, DisputeOutcome, DisputeStatus, dispute_edge
from cuota.core.installment import Installment, cut, lost, next_at, room
from cuota.core.order import posting
from cuota.core.order.event import Event
from cuota.core.order.give_back import card_refunds, changed, fee_due, standing
from cuota.core.order.movement import Movement, MovementKind
from cuota.core.order.order import Order
from cuota.core.order.outcome import Outcome
from cuota.core.payout.fee import OrderFees, fee_to_return
from cuota.core.payout.terms import SettlementTerms
from cuota.core.plan.notice import Notice, NoticeKind
from cuota.core.refusal import Code, Refused


@dataclass(frozen=True, slots=True)
class MerchantFees:
    """All versions of the merchant's terms, and the merchant's fees for the order's captures."""

    terms: Sequence[SettlementTerms]
    paid: OrderFees


def close_dispute(
    order: Order,
    plan: Sequence[Installment],
    dispute: Dispute,
    claims: Claims,
    fees: MerchantFees,
    now: datetime,
    new_id: Callable[[], UUID],
) -> Outcome:
    """Close a dispute whose decision is final. Raises Refused if it is not decided."""
    dispute_edge(dispute, "close")
    if dispute.status is DisputeStatus.WON:
        return release(order, plan, dispute, claims, "close", DisputeOutcome.WON, now, new_id)
    return _refund(order, plan, dispute, claims, fees, now, new_id)


def withdraw(
    order: Order,
    plan: Sequence[Installment],
    dispute: Dispute,
    claims: Claims,
    now: datetime,
    new_id: Callable[[], UUID],
) -> Outcome:
    """Withdraw the consumer's dispute. Raises Refused if it is closed, or a chargeback."""
    if dispute.kind is not DisputeKind.DISPUTE:
        raise Refused(Code.DISPUTE_NOT_POSSIBLE, "The card network decides a chargeback.")
    return release(order, plan, dispute, claims, "withdraw", DisputeOutcome.WITHDRAWN, now, new_id)


def release(
    order: Order,
    plan: Sequence[Installment],
    dispute: Dispute,
    claims: Claims,
    move: str,
    result: DisputeOutcome,
    now: datetime,
    new_id: Callable[[], UUID],
) -> Outcome:
    """Close the consumer's dispute in the merchant's favor: the withheld amount is released."""
    step = dispute_edge(dispute, move)
    release_id = new_id()
    done = replace(closed(dispute, result, now), release_id=release_id)
    free = less_open(replace(order, disputed=order.disputed - dispute.withheld), dispute)
    after, moved = resumed(free, plan, claims, now)
    return Outcome(
        order=after,
        installments=moved,
        disputes=(done,),
        transfers=tuple(posting.dispute_released(release_id, dispute.withheld)),
        notices=(_told(planned(plan, moved), 0, now, new_id),),
        events=(Event(step.event, dispute.withheld, str(dispute.dispute_id), result.value),),
        at=now,
    )


def _refund(
    order: Order,
    plan: Sequence[Installment],
    dispute: Dispute,
    claims: Claims,
    fees: MerchantFees,
    now: datetime,
    new_id: Callable[[], UUID],
) -> Outcome:
    """Close a lost dispute: the withheld amount is refunded, beginning with the unpaid installments."""
    step = dispute_edge(dispute, "close")
    movement_id, amount = new_id(), dispute.withheld
    fee = min(fee_due(order, amount), room(plan, claims.taken_back)[1])
    cutting = cut(plan, amount, fee, claims.taken_back)
    movement = lost_movement(MovementKind.REFUND, movement_id, amount, now)
    done = replace(closed(dispute, DisputeOutcome.LOST, now), movement_id=movement_id)
    free = replace(
        order,
        disputed=order.disputed - amount,
        refunded=order.refunded + amount,
        fee_returned=order.fee_returned + fee,
        collect_at=next_at(cutting.plan),
    )
    after, moved = resumed(less_open(free, dispute), cutting.plan, claims, now)
    final = planned(cutting.plan, moved)
    return Outcome(
        order=after,
        movement=movement,
        installments=changed(plan, final),
        disputes=(done,),
        transfers=(
            *posting.dispute_released(movement_id, amount),
            *posting.write_off_reversed(movement_id, lost(plan) - lost(cutting.plan)),
            *posting.dispute_lost(movement_id, cutting.unpaid, cutting.to_card),
            *posting.fee_returned(movement_id, cutting.fee_unpaid, cutting.fee_to_card),
            *posting.merchant_fee_returned(
                movement_id, fee_to_return(fees.terms, fees.paid, order.refunded + amount)
            ),
        ),
        card_refunds=card_refunds(cutting, new_id),
        notices=(_told(final, amount, now, new_id, cutting.by_charge),),
        events=(
            Event("refund.completed", amount, movement.reference),
            Event(step.event, 0, str(dispute.dispute_id), DisputeOutcome.LOST.value),
        ),
        at=now,
    )


def lost_movement(kind: MovementKind, movement_id: UUID, amount: int, now: datetime) -> Movement:
    """Return the movement of a lost dispute. A merchant cannot have used its reference, because the id is new."""
    return Movement(kind, movement_id, f"dispute-{movement_id}", amount, now)


def _told(
    plan: Sequence[Installment],
    amount: int,
    now: datetime,
    new_id: Callable[[], UUID],
    back: dict[UUID, int] | None = None,
) -> Notice:
    return Notice(new_id(), NoticeKind.DISPUTE_ENDED, 1, amount, now.date(), now, standing(plan, back))
