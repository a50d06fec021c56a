"""The instants of a payment: when its card is asked, when the consumer is reminded, when nobody is disturbed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, tzinfo

# Days ahead of a payment on which the consumer is reminded, at an hour when a message wakes nobody.
REMINDERS = (3, 1)
REMINDER_HOUR = time(10)
# Nobody is told at night how a payment went.
DAYTIME = (time(9), time(21))


@dataclass(frozen=True, slots=True)
class Days:
    """The instants of a payment's days, where the consumer lives."""

    zone: tzinfo

    def charge_at(self, due_on: date) -> datetime:
        """The start of the day on which a payment is due."""
        return datetime.combine(due_on, time(0), self.zone)

    def remind_at(self, due_on: date, after: datetime) -> datetime | None:
        """The next reminder of a payment later than `after`; None when the last was given."""
        days = (
            datetime.combine(due_on - timedelta(days=ahead), REMINDER_HOUR, self.zone) for ahead in REMINDERS
        )
        return min((at for at in days if at > after), default=None)

    def daytime(self, at: datetime) -> datetime:
        """The same instant, or the next morning if it is night there."""
        local = at.astimezone(self.zone)
        if local.time() < DAYTIME[0]:
            return datetime.combine(local.date(), DAYTIME[0], self.zone)
        if local.time() >= DAYTIME[1]:
            return datetime.combine(local.date() + timedelta(days=1), DAYTIME[0], self.zone)
        return at
