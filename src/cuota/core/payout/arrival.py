"""When a payout's money arrives, and when the service looks up the payout at the bank."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from cuota.core.payout.calendar import next_business_day
from cuota.core.payout.payout import PayoutStatus

BANK_ZONE = ZoneInfo("America/New_York")
OPENING = time(9, 0)
RETURN_DAYS = 5
"""A paid payout is looked up on this many business days. The merchant's bank returns an ACH credit within two."""
SLOW_AFTER = timedelta(days=1)
FIRST_WAIT, LONGEST_WAIT = timedelta(seconds=10), timedelta(hours=1)
_MOST_DOUBLINGS = 10


def day_at_bank(at: datetime) -> date:
    """Return the calendar day in New York, which US banks use."""
    return at.astimezone(BANK_ZONE).date()


def business_days_after(day: date, count: int) -> date:
    """Return the business day that is `count` business days after a day."""
    for _ in range(count):
        day = next_business_day(day)
    return day


def at_opening(day: date) -> datetime:
    """Return 09:00 in New York on that day."""
    return datetime.combine(day, OPENING, BANK_ZONE)


def next_look(status: PayoutStatus, since: datetime, arrival: date, now: datetime) -> datetime | None:
    """Return when to look up a payout that has had this status since then. None: the status can no longer change.

    A sent payout is looked up on the morning of its arrival, hourly on the first day after that, and then each business
    day without end. A paid payout may still come back for some business days.
    """
    if status is PayoutStatus.SENT:
        due = at_opening(arrival)
        if now < due:
            return due
        if now < due + SLOW_AFTER:
            return now + LONGEST_WAIT
        return at_opening(next_business_day(day_at_bank(now)))
    if status is PayoutStatus.PAID:
        following = next_business_day(day_at_bank(now))
        last = business_days_after(day_at_bank(since), RETURN_DAYS)
        return at_opening(following) if following <= last else None
    return None


def retry_at(tries: int, now: datetime) -> datetime:
    """Return when to call the bank again after a failed call. The delay is 10 seconds, and doubles up to an hour."""
    doublings: int = min(max(tries - 1, 0), _MOST_DOUBLINGS)
    return now + min(FIRST_WAIT * (1 << doublings), LONGEST_WAIT)
