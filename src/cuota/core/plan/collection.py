"""Collecting a plan: reminders, charges on their days, and the consequences of the card's answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta, tzinfo
from uuid import UUID

from cuota.core.installment import Installment, cut, lost, next_at, owed
from cuota.core.order import posting
from cuota.core.order.give_back import fee_due, standing
from cuota.core.order.job import CardRefund, JobState, Settled
from cuota.core.order.order import Order, Status
from cuota.core.order.outcome import Outcome
from cuota.core.plan.card import PlanCard
from cuota.core.plan.charge import Charge, Origin
from cuota.core.plan.declines import AUTHENTICATION_REQUIRED, is_hard, next_allowed
from cuota.core.plan.notice import Notice, NoticeKind
from cuota.core.plan.payday import Days

# How long to wait after the first, second, ... failed charge. After one more failure, the consumer must give another
# card.
RETRIES = (timedelta(hours=6), timedelta(days=1), timedelta(days=3), timedelta(days=5), timedelta(days=7))
# A payment that is charged days after its own day is announced this long before: the consumer has at least one whole day. The reason is an
# outage (missed.py), or that the card networks allow no earlier attempt.
ANNOUNCED_BEFORE = timedelta(days=2)
NewId = Callable[[], UUID]


class CardBusy(Exception):
    """A charge for this plan is in progress. Nothing else may change the plan until the card rail answers."""


class PlanPaused(Exception):
    """A dispute is open. Nothing is charged until the dispute ends."""


class CardExhausted(Exception):
    """The card was declined as often as the card networks allow. It may not be charged now."""


class NothingOwed(Exception):
    """The payment is paid, was canceled, or does not exist."""


def started(plan: Sequence[Installment], notice_id: UUID, now: datetime) -> Notice:
    """Return the message for a consumer whose first payment succeeded."""
    first, later = plan[0], owed(plan)
    day = (later or plan)[0].due_on
    return Notice(notice_id, NoticeKind.PLAN_STARTED, first.number, first.total, day, now, standing(plan))


def needs_card(plan: Sequence[Installment]) -> bool:
    """Return whether the plan needs another card, because its card had a hard decline."""
    return any(item.charge_at is None and 0 < item.failures <= len(RETRIES) for item in owed(plan))


def remind(
    order: Order,
    plan: Sequence[Installment],
    zone: tzinfo,
    now: datetime,
    new_id: NewId,
    *,
    refused: bool = False,
) -> Outcome | None:
    """Return the outcome of the reminders that are due, or None if no reminder is due.

    `refused`: the card must not be charged any more, so the consumer is asked for another one.
    There is no reminder for a payment that is already due, nor for a payment that will be canceled before its day because the
    authorization ends first.
    """
    due = [item for item in owed(plan) if item.remind_at is not None and item.remind_at <= now]
    if not due:
        return None
    kind = NoticeKind.CARD_NEEDED if refused or needs_card(plan) else NoticeKind.REMINDER
    ending = expiring(order, plan)
    notices = tuple(
        Notice(new_id(), kind, item.number, item.total, item.charge_at.astimezone(zone).date(), now)
        for item in due
        if item.charge_at is not None and now < item.charge_at and item.number not in ending
    )
    later = [replace(item, remind_at=_reminded_next(order, item, zone, now, ending)) for item in due]
    return with_changes(order, plan, later, notices=notices, now=now)


def expiring(order: Order, plan: Sequence[Installment]) -> frozenset[int]:
    """Return the numbers of the payments that will be canceled before their day, because the authorization ends first.

    This assumes that the merchant captures nothing more until then.
    """
    ends = order.authorization_expires_at
    if ends is None or not order.capturable:
        return frozenset()
    rest = cut(plan, order.capturable, fee_due(order, order.capturable)).plan
    return frozenset(
        item.number
        for item, then in zip(plan, rest, strict=True)
        if not then.total and not item.paid and item.charge_at is not None and ends <= item.charge_at
    )


def _reminded_next(
    order: Order, item: Installment, zone: tzinfo, now: datetime, ending: frozenset[int]
) -> datetime | None:
    """Return the time of the next reminder. If the payment may still be canceled, remind once the authorization has ended."""
    # A payment whose day was missed is charged later than it is due (missed.py).
    day = item.due_on if item.charge_at is None else item.charge_at.astimezone(zone).date()
    later, ends = Days(zone).remind_at(day, now), order.authorization_expires_at
    if later is not None or item.number not in ending or ends is None or ends <= now:
        return later
    known = Days(zone).daytime(ends)
    return known if item.charge_at is not None and known < item.charge_at else None


def begin(
    order: Order,
    plan: Sequence[Installment],
    number: int | None,
    card: PlanCard,
    charge_id: UUID,
    now: datetime,
    declined_at: Sequence[datetime] = (),
) -> Outcome | None:
    """Record a charge before the card rail is called: for payment `number`, or else for the first payment that is due.

    `declined_at` are the latest times at which this card was declined. A scheduled payment waits until the card networks allow
    another attempt, and is announced again if that takes days. Returns None if no payment is due. Raises CardBusy while another charge
    is in progress, NothingOwed if payment `number` needs no charge, and CardExhausted if the card must wait.
    """
    if order.charging is not None:
        raise CardBusy
    waiting = owed(plan) if order.status is Status.APPROVED else []
    if number is None:
        waiting = [item for item in waiting if item.charge_at is not None and item.charge_at <= now]
        origin = Origin.SCHEDULE
        if not waiting:
            return None
    else:
        waiting = [item for item in waiting if item.number == number]
        origin = Origin.CONSUMER
        if not waiting:
            raise NothingOwed
    item = waiting[0]
    allowed_at = next_allowed(declined_at, now)
    if allowed_at is not None:
        if origin is Origin.CONSUMER:
            raise CardExhausted
        # The earlier reminders named the payment's own day. The consumer knows of an overdue payment.
        known = allowed_at - ANNOUNCED_BEFORE
        remind_at = known if known > now and not item.failures else item.remind_at
        return with_changes(order, plan, [replace(item, charge_at=allowed_at, remind_at=remind_at)], now=now)
    charge = Charge(
        charge_id, item.number, item.total, order.currency, card.token, card.brand, card.last4, origin, card.card_hash,
    )  # fmt: skip
    charging = replace(order, charging=charge_id, charging_since=now)
    return Outcome(order=charging, charge=charge, at=now)


def outdated(order: Order, plan: Sequence[Installment], charge: Charge) -> bool:
    """Return whether a charge in progress takes another amount than is owed now, or is made during a dispute.

    If such a charge still waits for the consumer to confirm it, it is canceled.
    """
    return order.paused_at is not None or plan[charge.installment - 1].total != charge.amount


def give_up(
    order: Order,
    plan: Sequence[Installment],
    zone: tzinfo,
    now: datetime,
    new_id: NewId,
    *,
    refused: bool = False,
) -> Outcome | None:
    """Handle a due payment whose card had a hard decline: ask for another card instead of charging.

    `refused`: the card had a final decline, or its bank took a payment back. Returns None if no payment is due or the card may
    still pay.
    """
    due = [item for item in owed(plan) if item.charge_at is not None and item.charge_at <= now]
    if order.charging is not None or not due or not (refused or needs_card(plan)):
        return None
    item = due[0]
    tried = replace(item, failures=1, charge_at=None, remind_at=None)
    needed = Notice(
        new_id(), NoticeKind.CARD_NEEDED, item.number, item.total, item.due_on, Days(zone).daytime(now)
    )
    return with_changes(order, plan, [tried], notices=(needed,), now=now)


def paid(
    order: Order, plan: Sequence[Installment], charge: Charge, zone: tzinfo, now: datetime, new_id: NewId
) -> Outcome:
    """Record that the card paid.

    If a void or refund has reduced the installment in the meantime, the difference goes back to the card.
    """
    item = plan[charge.installment - 1]
    assert order.charging == charge.charge_id
    assert not item.paid
    excess = charge.amount - item.total
    done = replace(item, charge_id=charge.charge_id, charge_at=None, remind_at=None, returned=excess)
    send_at = Days(zone).daytime(now) if charge.origin is Origin.SCHEDULE else now
    after = [done if each.number == done.number else each for each in plan]
    stands = standing(after, {charge.charge_id: excess} if excess else None, zone)
    kind = NoticeKind.PAYMENT_RECEIVED if stands.left else NoticeKind.PLAN_PAID_OFF
    received = Notice(new_id(), kind, item.number, charge.amount, item.due_on, send_at, stands)
    return replace(
        with_changes(order, plan, [done], notices=(received,), now=now, charging=False),
        transfers=(
            *posting.recovery(charge.charge_id, lost([item])),
            *posting.installment_paid(charge.charge_id, charge.amount),
            *posting.overpaid(charge.charge_id, excess),
        ),
        card_refunds=(CardRefund(new_id(), charge.charge_id, excess),) if excess else (),
        charge_settled=Settled(charge.charge_id, JobState.SUCCEEDED),
    )


def failed(
    order: Order,
    plan: Sequence[Installment],
    charge: Charge,
    reason: str,
    zone: tzinfo,
    now: datetime,
    new_id: NewId,
) -> Outcome:
    """Record that the card declined. A scheduled charge is retried later, or the consumer is asked for another card.

    A charge that the consumer started on the page changes nothing in the plan: the page shows the decline. Neither does a scheduled
    charge of a payment that a dispute or a return notice has moved to a later time since: the payment is charged then.
    """
    assert order.charging == charge.charge_id
    settled = Settled(charge.charge_id, JobState.FAILED, reason)
    item = plan[charge.installment - 1]
    moved = item.charge_at is not None and item.charge_at > now
    # Nothing becomes overdue while the order is disputed.
    if charge.origin is not Origin.SCHEDULE or not item.total or order.paused_at is not None or moved:
        return replace(with_changes(order, plan, [], now=now, charging=False), charge_settled=settled)
    final = is_hard(reason) or item.failures >= len(RETRIES)
    again = None if final else now + RETRIES[item.failures]
    tried = replace(item, failures=item.failures + 1, charge_at=again, remind_at=None)
    unconfirmed = reason == AUTHENTICATION_REQUIRED
    kind = NoticeKind.CONFIRMATION_NEEDED if unconfirmed else NoticeKind.PAYMENT_FAILED
    told = _told_of_failure(item, kind, again, zone, now, new_id)
    return replace(
        with_changes(order, plan, [tried], notices=told, now=now, charging=False), charge_settled=settled
    )


def _told_of_failure(
    item: Installment, kind: NoticeKind, again: datetime | None, zone: tzinfo, now: datetime, new_id: NewId
) -> tuple[Notice, ...]:
    send_at = Days(zone).daytime(now)
    if again is None:
        needed = Notice(new_id(), NoticeKind.CARD_NEEDED, item.number, item.total, item.due_on, send_at)
        return (needed,)
    if again <= send_at and kind is NoticeKind.PAYMENT_FAILED:
        # The retry comes before the message would be sent; the retry has its own message.
        return ()
    day = again.astimezone(zone).date()
    return (Notice(new_id(), kind, item.number, item.total, day, send_at),)


def reschedule(order: Order, plan: Sequence[Installment], now: datetime) -> Outcome | None:
    """Correct `collect_at` if it differs from the plan. Return None if it is already correct."""
    if order.collect_at == next_at(plan):
        return None
    return with_changes(order, plan, [], now=now)


def with_changes(
    order: Order,
    plan: Sequence[Installment],
    changes: Sequence[Installment],
    *,
    now: datetime,
    notices: tuple[Notice, ...] = (),
    charging: bool = True,
) -> Outcome:
    """Return an outcome with the changed installments and the new `collect_at`. `charging` False also ends the charge in progress."""
    after = {item.number: item for item in (*plan, *changes)}
    new = replace(order, collect_at=next_at(list(after.values())))
    if not charging:
        new = replace(new, charging=None, charging_since=None)
    return Outcome(order=new, installments=tuple(changes), notices=notices, at=now)
