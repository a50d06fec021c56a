"""Collecting a plan: reminders, the charge on its day, and what follows from a card's answer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta, tzinfo
from uuid import UUID

from cuota.core.installment import Installment, cut, next_at, owed
from cuota.core.order import posting
from cuota.core.order.give_back import fee_due, standing
from cuota.core.order.order import Order, Status
from cuota.core.order.outcome import (
    CardRefund,
    Charge,
    JobState,
    Notice,
    NoticeKind,
    Origin,
    Outcome,
    PlanCard,
    Settled,
)
from cuota.core.plan.payday import Days

# After the first, second, ... failed charge: so long until the next. After the last of these another card is needed.
RETRIES = (timedelta(hours=6), timedelta(days=1), timedelta(days=3), timedelta(days=5), timedelta(days=7))
# A card that answers with one of these will never pay: it is not asked again.
HARD_DECLINES = frozenset(
    {"card_expired", "card_lost", "card_stolen", "card_closed", "card_unknown", "card_restricted"}
)
# Whoever changes the card again and again fills nobody's mailbox.
CARD_TOLD_EVERY = timedelta(days=1)
NewId = Callable[[], UUID]


class CardBusy(Exception):  # noqa: N818 - a fact
    """A card is being asked for this plan right now; its answer decides."""


class NothingOwed(Exception):  # noqa: N818 - a fact
    """The payment is paid, cancelled, or not there."""


def timed(plan: Sequence[Installment], zone: tzinfo, now: datetime) -> list[Installment]:
    """A plan whose unpaid installments know when they are charged, and when the consumer is reminded."""
    days = Days(zone)
    return [
        item
        if item.paid
        else replace(item, charge_at=days.charge_at(item.due_on), remind_at=days.remind_at(item.due_on, now))
        for item in plan
    ]


def started(plan: Sequence[Installment], notice_id: UUID, now: datetime) -> Notice:
    """What the consumer is told when the first payment went through."""
    first, later = plan[0], owed(plan)
    day = (later or plan)[0].due_on
    return Notice(notice_id, NoticeKind.PLAN_STARTED, first.number, first.total, day, now, standing(plan))


def needs_card(plan: Sequence[Installment]) -> bool:
    """A card said that it will never pay: it is asked for nothing any more, another is needed."""
    return any(item.charge_at is None and 0 < item.failures <= len(RETRIES) for item in owed(plan))


def remind(
    order: Order, plan: Sequence[Installment], zone: tzinfo, now: datetime, new_id: NewId
) -> Outcome | None:
    """Decide the reminders that are due. None where none is. One whose payment is due already is not given.

    A payment that the end of the authorization will cancel before its day is not reminded of while that is so.
    """
    due = [item for item in owed(plan) if item.remind_at is not None and item.remind_at <= now]
    if not due:
        return None
    kind = NoticeKind.CARD_NEEDED if needs_card(plan) else NoticeKind.REMINDER
    ending = expiring(order, plan)
    notices = tuple(
        Notice(new_id(), kind, item.number, item.total, item.due_on, now)
        for item in due
        if item.charge_at is not None and now < item.charge_at and item.number not in ending
    )
    later = [replace(item, remind_at=_reminded_next(order, item, zone, now, ending)) for item in due]
    return _planned(order, plan, later, notices=notices, now=now)


def expiring(order: Order, plan: Sequence[Installment]) -> frozenset[int]:
    """The numbers of the payments that the end of the authorization will cancel whole before their day.

    Unless the merchant captures meanwhile.
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
    """The next reminder; of a payment that may yet be canceled, at the latest when that is known."""
    later, ends = Days(zone).remind_at(item.due_on, now), order.authorization_expires_at
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
) -> Outcome | None:
    """Write down a charge before the rail is called: of payment `number`, or of the first that is due (None: none is).

    Raises CardBusy while another is under way, NothingOwed where `number` asks for nothing.
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
    charge = Charge(charge_id, item.number, item.total, card.token, card.brand, card.last4, origin)
    charging = replace(order, charging=charge_id, charging_since=now)
    return Outcome(order=charging, charge=charge, at=now)


def give_up(
    order: Order, plan: Sequence[Installment], zone: tzinfo, now: datetime, new_id: NewId
) -> Outcome | None:
    """A payment is due and its card will never pay: it is not asked. None where none is due, or the card may pay."""
    due = [item for item in owed(plan) if item.charge_at is not None and item.charge_at <= now]
    if order.charging is not None or not due or not needs_card(plan):
        return None
    item = due[0]
    tried = replace(item, failures=1, charge_at=None, remind_at=None)
    needed = Notice(
        new_id(), NoticeKind.CARD_NEEDED, item.number, item.total, item.due_on, Days(zone).daytime(now)
    )
    return _planned(order, plan, [tried], notices=(needed,), now=now)


def paid(
    order: Order, plan: Sequence[Installment], charge: Charge, zone: tzinfo, now: datetime, new_id: NewId
) -> Outcome:
    """The card paid. What a void or refund has cut from the installment meanwhile goes back to the card."""
    item = plan[charge.installment - 1]
    assert order.charging == charge.charge_id
    assert not item.paid
    excess = charge.amount - item.total
    done = replace(item, charge_id=charge.charge_id, charge_at=None, remind_at=None, returned=excess)
    send_at = Days(zone).daytime(now) if charge.origin is Origin.SCHEDULE else now
    after = [done if each.number == done.number else each for each in plan]
    stands = standing(after, {charge.charge_id: excess} if excess else None)
    kind = NoticeKind.PAYMENT_RECEIVED if stands.left else NoticeKind.PLAN_PAID_OFF
    received = Notice(new_id(), kind, item.number, charge.amount, item.due_on, send_at, stands)
    return replace(
        _planned(order, plan, [done], notices=(received,), now=now, charging=False),
        transfers=(
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
    """The card said no. A scheduled charge is tried again later, or stops and asks for another card.

    One that the consumer asked for changes nothing: the consumer is told on the page.
    """
    assert order.charging == charge.charge_id
    settled = Settled(charge.charge_id, JobState.FAILED, reason)
    item = plan[charge.installment - 1]
    if charge.origin is not Origin.SCHEDULE or not item.total:
        return replace(_planned(order, plan, [], now=now, charging=False), charge_settled=settled)
    final = reason in HARD_DECLINES or item.failures >= len(RETRIES)
    again = None if final else now + RETRIES[item.failures]
    tried = replace(item, failures=item.failures + 1, charge_at=again, remind_at=None)
    told = _told_of_failure(item, again, zone, now, new_id)
    return replace(
        _planned(order, plan, [tried], notices=told, now=now, charging=False), charge_settled=settled
    )


def _told_of_failure(
    item: Installment, again: datetime | None, zone: tzinfo, now: datetime, new_id: NewId
) -> tuple[Notice, ...]:
    send_at = Days(zone).daytime(now)
    if again is None:
        needed = Notice(new_id(), NoticeKind.CARD_NEEDED, item.number, item.total, item.due_on, send_at)
        return (needed,)
    if again <= send_at:
        # By the morning the next try is over, and that one is told.
        return ()
    day = again.astimezone(zone).date()
    return (Notice(new_id(), NoticeKind.PAYMENT_FAILED, item.number, item.total, day, send_at),)


def change_card(
    order: Order,
    plan: Sequence[Installment],
    card: PlanCard,
    now: datetime,
    new_id: NewId,
    told_at: datetime | None = None,
) -> Outcome:
    """The consumer gave another card: it pays from now on, and what is overdue is asked of it at once.

    `told_at` is when the consumer was last told of such a change: at most once in CARD_TOLD_EVERY.
    Raises CardBusy while the old one is being asked, NothingOwed where nothing is left to pay.
    """
    if order.charging is not None:
        raise CardBusy
    waiting = owed(plan) if order.status is Status.APPROVED else []
    if not waiting:
        raise NothingOwed
    overdue = [replace(item, charge_at=now, failures=1) for item in waiting if item.failures]
    first = waiting[0]
    told = Notice(new_id(), NoticeKind.CARD_CHANGED, first.number, first.total, first.due_on, now)
    lately = told_at is not None and now - told_at < CARD_TOLD_EVERY
    notices = () if lately else (told,)
    return replace(_planned(order, plan, overdue, notices=notices, now=now), plan_card=card)


def wait_longer(order: Order, now: datetime) -> Outcome:
    """The rail still has no answer: it is asked again a while from now, after others had their turn."""
    return Outcome(order=replace(order, charging_since=now), at=now)


def reschedule(order: Order, plan: Sequence[Installment], now: datetime) -> Outcome | None:
    """Where the order's own time is not its plan's: put it right. None where it is."""
    if order.collect_at == next_at(plan):
        return None
    return _planned(order, plan, [], now=now)


def _planned(
    order: Order,
    plan: Sequence[Installment],
    changes: Sequence[Installment],
    *,
    now: datetime,
    notices: tuple[Notice, ...] = (),
    charging: bool = True,
) -> Outcome:
    """The order beside a changed plan; `charging` False also ends the charge that it waited for."""
    after = {item.number: item for item in (*plan, *changes)}
    new = replace(order, collect_at=next_at(list(after.values())))
    if not charging:
        new = replace(new, charging=None, charging_since=None)
    return Outcome(order=new, installments=tuple(changes), notices=notices, at=now)
