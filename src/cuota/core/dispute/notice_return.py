"""Records a return notice, and ends it after a refund."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta, tzinfo
from uuid import UUID

from cuota.core.dispute.return_notice import HOLD_FOR, ReturnNotice
from cuota.core.installment import Installment, next_at, upcoming
from cuota.core.order.event import Event
from cuota.core.order.order import Order, Status
from cuota.core.order.outcome import Outcome
from cuota.core.plan.notice import Notice, NoticeKind
from cuota.core.plan.payday import Days
from cuota.core.refusal import Code, Refused


def notice_return(
    order: Order,
    plan: Sequence[Installment],
    zone: tzinfo,
    carrier: str,
    tracking: str,
    return_id: UUID,
    now: datetime,
    new_id: Callable[[], UUID],
) -> Outcome:
    """Record a return notice: the next scheduled installment moves to the end of the hold, if it is due earlier.

    Raises Refused if there is nothing that the merchant could refund, if a notice is already in force, or if a dispute pauses
    the plan.
    """
    if order.status is not Status.APPROVED or not order.refundable:
        raise Refused(
            Code.RETURN_NOT_POSSIBLE,
            "The shop has not received any money for this order, so there is nothing to refund.",
        )
    if order.paused_at is not None:
        raise Refused(
            Code.RETURN_NOT_POSSIBLE,
            "While a dispute about this order is open, nothing is charged. Add the tracking number to your dispute.",
        )
    if order.return_hold_until is not None and now < order.return_hold_until:
        raise Refused(Code.RETURN_NOT_POSSIBLE, "You have already told us that you sent this order back.")
    until = now + HOLD_FOR
    days, last_day = Days(zone), until.astimezone(zone).date()
    scheduled = [item for item in upcoming(plan, zone) if item.charge_at is not None and not item.failures]
    held = [item for item in scheduled[:1] if item.due_on < last_day]
    moved = tuple(
        replace(item, due_on=last_day, charge_at=days.charge_at(last_day), remind_at=days.remind_at(last_day, now))
        for item in held
    )  # fmt: skip
    after = {item.number: item for item in (*plan, *moved)}
    # If no payment waits, the message has no amount.
    waiting = [(item.number, item.total) for item in held] or [(plan[0].number, 0)]
    return Outcome(
        order=replace(order, collect_at=next_at(list(after.values())), return_hold_until=until),
        installments=moved,
        returned=ReturnNotice(
            return_id, carrier, tracking, now, until,
            held[0].number if held else None, held[0].due_on if held else None,
        ),
        notices=(Notice(new_id(), NoticeKind.RETURN_NOTED, *waiting[0], last_day, now),),
        events=(Event("return.noticed", order.refundable, str(return_id)),),
        at=now,
    )  # fmt: skip


def end_hold(
    notice: ReturnNotice, plan: Sequence[Installment], zone: tzinfo, now: datetime
) -> tuple[ReturnNotice, tuple[Installment, ...]]:
    """Return the notice as ended by a refund, and the installment back on its old day, or tomorrow if that is later.

    If a dispute moved the installment after the notice, its old day counts as later by the same number of days.
    Nothing moves if the installment was paid, was canceled, or is paused by a dispute.
    """
    ended = replace(notice, ended_at=now)
    if notice.installment is None or notice.due_on is None:
        return ended, ()
    item = next(each for each in plan if each.number == notice.installment)
    if item.paid or not item.total or item.charge_at is None or item.failures:
        return ended, ()
    days = Days(zone)
    later = item.due_on - notice.hold_until.astimezone(zone).date()
    day = max(notice.due_on + max(later, timedelta(0)), now.astimezone(zone).date() + timedelta(days=1))
    if day >= item.due_on:
        return ended, ()
    back = replace(item, due_on=day, charge_at=days.charge_at(day), remind_at=days.remind_at(day, now))
    return ended, (back,)
