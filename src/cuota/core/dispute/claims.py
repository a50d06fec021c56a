"""An order's open claims: its disputes and its return notice. Refunds and closed disputes change the claims and the order together."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, tzinfo
from typing import Protocol
from uuid import UUID

from cuota.core.dispute.dispute import (
    Dispute,
    DisputeKind,
    DisputeOutcome,
    DisputeReason,
    DisputeStatus,
    dispute_edge,
)
from cuota.core.dispute.notice_return import end_hold
from cuota.core.dispute.pause import resume
from cuota.core.dispute.return_notice import ReturnNotice
from cuota.core.installment import Installment, next_at
from cuota.core.order import posting
from cuota.core.order.event import Event
from cuota.core.order.give_back import standing
from cuota.core.order.job import CardRefund
from cuota.core.order.order import Order
from cuota.core.order.outcome import Outcome


class Chargeback(Protocol):
    """A chargeback that is open, or that the card processor reports now. `amount` is in cents."""

    @property
    def charge_id(self) -> UUID | None:
        """The charge that the card network took back."""

    @property
    def reason(self) -> DisputeReason:
        """The network's reason."""

    @property
    def amount(self) -> int:
        """The cents that the network took back."""


@dataclass(frozen=True, slots=True)
class Claims:
    """The disputes of an order that are not closed, the return notice in force, and the consumer's time zone.

    `closed` are the consumer's own disputes that are closed. `of_card` are the charges that the plan's present card paid.
    `unsent` are the card refunds that are surely not on the card: they failed, or no rail was asked for them. `borne` are the cents
    that Cuota lost in earlier chargebacks of a charge, without the refunds that these chargebacks returned. `paid_otherwise` are the
    card refunds that failed and were then paid by the operator in another way.
    """

    zone: tzinfo
    disputes: tuple[Dispute, ...] = ()
    returned: ReturnNotice | None = None
    closed: tuple[Dispute, ...] = ()
    of_card: frozenset[UUID] = frozenset()
    unsent: tuple[CardRefund, ...] = ()
    borne: Mapping[UUID, int] = field(default_factory=dict)
    paid_otherwise: tuple[CardRefund, ...] = ()

    @property
    def of_consumer(self) -> Dispute | None:
        """Return the consumer's own open dispute, of which there is at most one."""
        return next((each for each in self.disputes if each.kind is DisputeKind.DISPUTE), None)

    @property
    def taken_back(self) -> dict[UUID, int]:
        """Return the cents that card networks have taken back from each charge. These cents cannot be refunded.

        A chargeback that replaces a refund takes nothing else back: the refund has already reduced the plan. What a chargeback
        withholds cannot be refunded in any case, so that all chargebacks of a payment withhold no more than the payment.
        """
        taken = Counter[UUID]()
        for each in self.chargebacks:
            if each.charge_id is not None:
                # A charge can have several chargebacks, each of a part.
                taken[each.charge_id] += max(each.amount - self.replaced(each), each.withheld)
        return dict(taken)

    @property
    def chargebacks(self) -> tuple[Dispute, ...]:
        """Return the open chargebacks, oldest first."""
        found = (each for each in self.disputes if each.kind is DisputeKind.CHARGEBACK)
        return tuple(sorted(found, key=lambda each: (each.opened_at, each.dispute_id)))

    def unsent_of(self, charge_id: UUID | None) -> list[CardRefund]:
        """Return the refunds of a charge that are surely not on the card."""
        return [each for each in self.unsent if each.charge_id == charge_id]

    def beside(self, charge_id: UUID | None, dispute_id: UUID | None = None) -> list[Dispute]:
        """Return the open chargebacks of a charge, oldest first, without this dispute."""
        return [
            each for each in self.chargebacks if each.charge_id == charge_id and each.dispute_id != dispute_id
        ]

    def replaced(self, about: Chargeback) -> int:
        """Return the cents of a chargeback that replace refunds of the shop which did not arrive. The shop has paid them already.

        A refund counts for the oldest of several open chargebacks; one that is only reported is the newest.
        """
        if about.reason is not DisputeReason.NOT_REFUNDED:
            return 0
        missing = [each for each in (*self.unsent, *self.paid_otherwise) if each.charge_id == about.charge_id]
        left = sum(each.amount for each in missing)
        for each in self.beside(about.charge_id):
            if each == about:
                break
            left -= each.amount if each.reason is about.reason else 0
        return max(0, min(about.amount, left))


def planned(plan: Sequence[Installment], changes: Sequence[Installment]) -> tuple[Installment, ...]:
    """Return the plan after these changes."""
    after = {item.number: item for item in (*plan, *changes)}
    return tuple(after[number] for number in sorted(after))


def less_open(order: Order, dispute: Dispute) -> Order:
    """Return the order with one fewer open dispute. The dispute's withheld amount must already be released or moved."""
    chargebacks = order.open_chargebacks - (dispute.kind is DisputeKind.CHARGEBACK)
    return replace(order, open_disputes=order.open_disputes - 1, open_chargebacks=chargebacks)


def resumed(
    order: Order, plan: Sequence[Installment], claims: Claims, now: datetime
) -> tuple[Order, tuple[Installment, ...]]:
    """Return the order and the plan's changes after a dispute has closed. Nothing resumes while another one is open."""
    if order.open_disputes or order.paused_at is None:
        return order, ()
    moved = resume(plan, claims.zone, order.paused_at, now)
    return replace(order, paused_at=None, collect_at=next_at(planned(plan, moved))), moved


def shrink(
    outcome: Outcome, plan: Sequence[Installment], claims: Claims, amount: int, cause: UUID
) -> Outcome:
    """Reduce the consumer's dispute by an amount that the consumer got back in another way.

    The amount is released to the merchant. A dispute whose whole amount is gone is closed. `plan` is the plan as it was read.
    """
    dispute = claims.of_consumer
    less = min(amount, dispute.withheld) if dispute is not None else 0
    if dispute is None or not less:
        return outcome
    order = replace(outcome.order, disputed=outcome.order.disputed - less)
    left = replace(dispute, withheld=dispute.withheld - less)
    events: tuple[Event, ...] = ()
    moved: tuple[Installment, ...] = ()
    if not left.withheld:
        step = dispute_edge(dispute, "resolve")
        left = closed(left, DisputeOutcome.RESOLVED, outcome.at)
        events = (Event(step.event, 0, str(left.dispute_id), DisputeOutcome.RESOLVED.value),)
        order, moved = resumed(
            less_open(order, left), planned(plan, outcome.installments), claims, outcome.at
        )
    return replace(
        outcome,
        order=order,
        installments=_merged(outcome.installments, moved),
        disputes=(*outcome.disputes, left),
        transfers=(*outcome.transfers, *posting.dispute_released(cause, less)),
        events=(*outcome.events, *events),
    )


def closed(dispute: Dispute, outcome: DisputeOutcome, now: datetime) -> Dispute:
    """Return the dispute as closed, with nothing withheld."""
    return replace(
        dispute, status=DisputeStatus.CLOSED, outcome=outcome, closed_at=now, withheld=0, appeal_by=None
    )


def after_refund(
    outcome: Outcome, plan: Sequence[Installment], claims: Claims | None, amount: int, cause: UUID
) -> Outcome:
    """Complete the outcome of a refund of `amount`: the refund reduces the consumer's dispute, and ends a return hold.

    The refund's message has the days on which the payments are charged after that.
    """
    if claims is None:
        return outcome
    done = shrink(outcome, plan, claims, amount, cause)
    if claims.returned is not None:
        done = _end_hold(done, plan, claims, claims.returned)
    left = standing(planned(plan, done.installments), zone=claims.zone).left
    told = tuple(
        replace(each, standing=each.standing and replace(each.standing, left=left)) for each in done.notices
    )
    return replace(done, notices=told)


def _end_hold(done: Outcome, plan: Sequence[Installment], claims: Claims, notice: ReturnNotice) -> Outcome:
    ended, moved = end_hold(notice, planned(plan, done.installments), claims.zone, done.at)
    changes = _merged(done.installments, moved)
    order = replace(done.order, return_hold_until=None, collect_at=next_at(planned(plan, changes)))
    return replace(done, order=order, installments=changes, returned=ended)


def _merged(first: Sequence[Installment], second: Sequence[Installment]) -> tuple[Installment, ...]:
    after = {item.number: item for item in (*first, *second)}
    return tuple(after.values())
