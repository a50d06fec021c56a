"""Payments whose day Cuota missed, because the service or a card processor was down: each is announced before it is charged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime, timedelta, tzinfo

from cuota.core.installment import Installment, owed
from cuota.core.order.order import Order
from cuota.core.order.outcome import Outcome
from cuota.core.plan.collection import ANNOUNCED_BEFORE, NewId, with_changes
from cuota.core.plan.notice import Notice, NoticeKind
from cuota.core.plan.payday import Days

# A charge that is late by less than this is made at once. After that, the consumer no longer expects the charge.
MISSED_AFTER = timedelta(days=2)
# After a long outage, the missed payments of a plan are not charged together.
APART = timedelta(days=7)


def was_missed(item: Installment, now: datetime) -> bool:
    """Return whether the payment's day has passed without an answer of its card."""
    return not item.failures and item.charge_at is not None and item.charge_at + MISSED_AFTER <= now


def postpone(
    order: Order, plan: Sequence[Installment], zone: tzinfo, now: datetime, new_id: NewId
) -> Outcome | None:
    """Give every missed payment a later charge, and announce the first one now. Return None if no payment was missed.

    The payment stays due on its agreed day, and the payments whose days have not passed keep their days. A retry that was missed
    is not postponed: the consumer knows that the payment is overdue.
    """
    missed = [item for item in owed(plan) if was_missed(item, now)]
    if order.charging is not None or not missed:
        return None
    days = Days(zone)
    others = [item.charge_at for item in owed(plan) if item.charge_at is not None and item not in missed]
    taken = {at.astimezone(zone).date() for at in others}
    # A message that is written at night is sent in the morning.
    told_at = days.daytime(now)
    day = told_at.astimezone(zone).date() + ANNOUNCED_BEFORE
    changes: list[Installment] = []
    for item in missed:
        day = free_day(day, taken)
        # The first one is announced below.
        remind_at = days.remind_at(day, now) if changes else None
        changes.append(replace(item, charge_at=days.charge_at(day), remind_at=remind_at))
        day += APART
    first = changes[0]
    assert first.charge_at is not None
    announced = Notice(
        new_id(),
        NoticeKind.REMINDER,
        first.number,
        first.total,
        first.charge_at.astimezone(zone).date(),
        told_at,
    )
    return with_changes(order, plan, changes, notices=(announced,), now=now)


def free_day(day: date, taken: set[date]) -> date:
    """Return the first day from `day` on, on which no other payment of the plan is charged."""
    while day in taken:
        day += timedelta(days=1)
    return day
