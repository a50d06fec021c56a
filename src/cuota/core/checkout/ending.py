"""Decides how a checkout ends: approved after a charge, declined, canceled, or timed out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from uuid import UUID

from cuota.core.installment import DAYS_BETWEEN, Installment, next_at
from cuota.core.order import posting
from cuota.core.order.event import Event
from cuota.core.order.job import JobState, Settled
from cuota.core.order.movement import Movement, MovementKind
from cuota.core.order.order import WARNINGS, Final, Order, Status, edge
from cuota.core.order.outcome import Outcome
from cuota.core.payout.fee import capture_fee
from cuota.core.payout.terms import SettlementTerms
from cuota.core.plan.charge import Charge
from cuota.core.plan.notice import Notice
from cuota.core.plan.plan import Plan
from cuota.core.risk.decision import StoredDecision
from cuota.core.risk.review import ReviewAnswer, ReviewState

CARD_TRIES = 3


class Charging(Exception):
    """A charge for this order is in progress. The card rail's answer decides how the checkout continues."""


class Lapsed(Exception):
    """The order has timed out."""


class UnderReview(Exception):
    """A person is reviewing the order. The reviewer's answer decides what happens."""


def require_open(order: Order, now: datetime) -> None:
    """Check that the consumer may continue. Raises Final, UnderReview, Charging or Lapsed."""
    if order.status is not Status.CREATED:
        raise Final(order.status)
    if order.review is ReviewState.WAITING:
        raise UnderReview
    if order.charging is not None:
        raise Charging
    if now >= order.expires_at:
        raise Lapsed


def begin(order: Order, plan: Plan, charge: Charge, decision: StoredDecision, now: datetime) -> Outcome:
    """Record the charge before the card rail is called, after the consumer has agreed and risk has approved."""
    require_open(order, now)
    charging = replace(order, charging=charge.charge_id, charging_since=now)
    return Outcome(order=charging, plan=plan, charge=charge, decision=decision, at=now)


def approve(
    order: Order,
    installments: Sequence[Installment],
    charge: Settled,
    movement_id: UUID,
    notice: Notice,
    now: datetime,
    authorization_days: int,
    terms: Sequence[SettlementTerms] = (),
) -> Outcome:
    """Approve the order, because the card paid the first installment. An automatic capture happens in the same outcome.

    `installments` is the agreed schedule: this charge pays the first installment, and the others have due times. `notice` is the
    message to the consumer. `terms` are all versions of the merchant's terms; they set the fee of an automatic capture.
    """
    move = edge(order.status, "approve")
    first = installments[0]
    assert order.charging == charge.job_id == first.charge_id
    transfers = posting.authorization(order.order_id, order.amount, order.fee)
    transfers += posting.installment_paid(charge.job_id, first.total)
    events = [Event(move.event, order.amount)]
    movement = None
    done = replace(order, status=move.after, charging=None, charging_since=None)
    done = replace(done, collect_at=next_at(installments))
    if order.auto_capture:
        movement = Movement(
            MovementKind.CAPTURE, movement_id, f"auto-capture-{movement_id}", order.amount, now
        )
        transfers += posting.capture(movement_id, order.amount)
        transfers += posting.merchant_fee(movement_id, capture_fee(terms, order.amount, now))
        events.append(Event("capture.completed", order.amount, movement.reference))
        done = replace(done, captured=order.amount)
    else:
        holds = timedelta(days=authorization_days)
        warned = sum(ahead >= holds for ahead in WARNINGS)  # reminders whose time has already passed
        ends, second = now + holds, installments[1].charge_at
        # A clock change, or a rail's answer after midnight, must not let the authorization last until installment 2 is due.
        if authorization_days < DAYS_BETWEEN and second is not None and now < second < ends:
            ends = second
        done = replace(done, authorization_expires_at=ends, warned=warned)
    return Outcome(
        order=done,
        movement=movement,
        installments=tuple(installments),
        transfers=tuple(transfers),
        events=tuple(events),
        charge_settled=charge,
        notices=(notice,),
        at=now,
    )


def card_failed(order: Order, charge: Settled, now: datetime) -> Outcome:
    """Record that the card declined. The consumer may try other cards; after three failures the order is Declined."""
    assert charge.state is JobState.FAILED
    failures = order.card_failures + 1
    again = replace(order, card_failures=failures, charging=None, charging_since=None)
    if failures < CARD_TRIES:
        return Outcome(order=again, charge_settled=charge, at=now)
    move = edge(order.status, "decline")
    event = Event(move.event, order.amount, message="The consumer's cards failed.")
    return Outcome(order=replace(again, status=move.after), events=(event,), charge_settled=charge, at=now)


def decline(order: Order, decision: StoredDecision, letter: Notice, now: datetime) -> Outcome:
    """Decline the order after a risk decision. `letter` tells the consumer why."""
    require_open(order, now)
    move = edge(order.status, "decline")
    event = Event(move.event, order.amount, message="The order was not approved.")
    done = replace(order, status=move.after)
    return Outcome(order=done, events=(event,), decision=decision, notices=(letter,), at=now)


def abandon(order: Order, now: datetime, *, left: bool) -> Outcome:
    """Abandon the order: the consumer canceled it (`left`), or it timed out. Raises Final, or Charging during a charge."""
    move = edge(order.status, "leave" if left else "lapse")
    if order.charging is not None:
        raise Charging
    message = "The consumer left the checkout." if left else "The order was not completed in time."
    event = Event(move.event, order.amount, message=message)
    done = replace(order, status=move.after)
    if order.review is not ReviewState.WAITING:
        return Outcome(order=done, events=(event,), at=now)
    closed = ReviewAnswer(ReviewState.CLOSED)
    done = replace(done, review=closed.state, review_by=None)
    return Outcome(order=done, events=(event,), review_answer=closed, at=now)
