"""Write-offs: an installment that stays unpaid for too long becomes a loss. The consumer can still pay it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import date, datetime, time, timedelta
from uuid import UUID

from cuota.core.installment import Installment, next_at, owed
from cuota.core.order import posting
from cuota.core.order.order import Order
from cuota.core.order.outcome import Outcome

# At noon UTC the day has begun in every time zone of the United States.
HOUR = time(12)


def last_day(now: datetime, days: int) -> date:
    """Return the latest due day of installments that are written off by now: `days` days ago."""
    return (now - timedelta(hours=HOUR.hour)).date() - timedelta(days=days)


def write_off(
    order: Order, plan: Sequence[Installment], days: int, now: datetime, new_id: Callable[[], UUID]
) -> Outcome | None:
    """Write off every installment that has been overdue for `days` days. Return None if there is none.

    Nothing is written off before a due charge or a charge in progress has ended, because the card may still pay, nor while
    a dispute pauses the plan.
    """
    until = last_day(now, days)
    late = [item for item in owed(plan) if item.state == "overdue" and item.due_on <= until]
    late = [item for item in late if item.charge_at is None or item.charge_at > now]
    if order.charging is not None or order.paused_at is not None or not late:
        return None
    given_up = [replace(item, written_off_at=now, charge_at=None, remind_at=None) for item in late]
    after = {item.number: item for item in (*plan, *given_up)}
    return Outcome(
        order=replace(order, collect_at=next_at(list(after.values()))),
        transfers=tuple(line for item in given_up for line in posting.write_off(new_id(), item.total)),
        installments=tuple(given_up),
        at=now,
    )
