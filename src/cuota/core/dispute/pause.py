"""While an order is disputed, nothing is charged. Afterward, each payment is later by the length of the dispute."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta, tzinfo

from cuota.core.installment import Installment, owed
from cuota.core.plan.collection import RETRIES
from cuota.core.plan.missed import APART, free_day
from cuota.core.plan.payday import Days


def pause(plan: Sequence[Installment]) -> tuple[Installment, ...]:
    """Return the unpaid installments that change: their charges and reminders are removed."""
    return tuple(
        replace(item, charge_at=None, remind_at=None)
        for item in owed(plan)
        if item.charge_at is not None or item.remind_at is not None
    )


def resume(
    plan: Sequence[Installment], zone: tzinfo, paused_at: datetime, now: datetime
) -> tuple[Installment, ...]:
    """Return the unpaid installments with their new days: later by the days of the pause, and not before tomorrow.

    A payment that had failed before the pause is retried tomorrow. A payment that had used up its retries is not. If an outage had
    delayed several payments before the pause, they are not charged together, but a week apart.
    """
    days = Days(zone)
    today = now.astimezone(zone).date()
    tomorrow = today + timedelta(days=1)
    later = today - paused_at.astimezone(zone).date()
    taken = {item.due_on + later for item in owed(plan) if not item.failures}
    next_day = tomorrow
    moved = []
    for item in owed(plan):
        if item.written_off_at is not None:
            continue
        day = item.due_on + later
        if item.failures > len(RETRIES):
            moved.append(replace(item, due_on=day))
        elif item.failures:
            # Earlier releases marked payments as failed before their day, after a lost chargeback.
            again = max(tomorrow, item.due_on)
            moved.append(replace(item, due_on=day, charge_at=days.charge_at(again)))
        else:
            if day < tomorrow:
                day = next_day = free_day(next_day, taken)
                next_day += APART
            moved.append(
                replace(item, due_on=day, charge_at=days.charge_at(day), remind_at=days.remind_at(day, now))
            )
    return tuple(moved)
