"""Computes the times of a payment: when its card is charged, when the consumer is reminded, and when it is daytime."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime, time, timedelta, tzinfo

from cuota.core.installment import Installment

# The days before a payment on which the consumer is reminded, at an hour in the daytime.
REMINDERS = (3, 1)
REMINDER_HOUR = time(10)
# Messages about payments are sent only in the daytime.
DAYTIME = (time(9), time(21))


@dataclass(frozen=True, slots=True)
class Days:
    """Computes times in the consumer's time zone."""

    zone: tzinfo

    def charge_at(self, due_on: date) -> datetime:
        """Return the time of the charge on the day on which a payment is due."""
        return datetime.combine(due_on, time(0), self.zone)

    def remind_at(self, due_on: date, after: datetime) -> datetime | None:
        """Return the time of the next reminder after `after`, or None if there are no more reminders."""
        days = (
            datetime.combine(due_on - timedelta(days=ahead), REMINDER_HOUR, self.zone) for ahead in REMINDERS
        )
        return min((at for at in days if at > after), default=None)

    def daytime(self, at: datetime) -> datetime:
        """Return the same instant, or the next morning if it is night in the consumer's time zone."""
        local = at.astimezone(self.zone)
        if local.time() < DAYTIME[0]:
            return datetime.combine(local.date(), DAYTIME[0], self.zone)
        if local.time() >= DAYTIME[1]:
            return datetime.combine(local.date() + timedelta(days=1), DAYTIME[0], self.zone)
        return at


def timed(plan: Sequence[Installment], zone: tzinfo, now: datetime) -> list[Installment]:
    """Return the plan with the times of the charge and of the reminder set on each unpaid installment."""
    days = Days(zone)
    return [
        item
        if item.paid
        else replace(item, charge_at=days.charge_at(item.due_on), remind_at=days.remind_at(item.due_on, now))
        for item in plan
    ]
