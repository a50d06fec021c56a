"""A merchant's cutoffs: the instants at which a batch of settlement lines closes, by the merchant's own calendar.

Every day has a cutoff. The terms in force at that time decide whether the merchant is paid at this cutoff, so a changed
schedule takes effect on the next day.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from cuota.core.payout.terms import PayoutSchedule, SettlementTerms

BANK_ZONE = ZoneInfo("America/New_York")
"""The time zone of the bank's days."""

NO_TERMS = SettlementTerms(version=0, valid_from=datetime.min.replace(tzinfo=UTC))
"""The terms of a merchant without a version in force: no fee, no reserve, paid daily at midnight in New York."""

_MONDAY = 0


def next_cutoff(terms: SettlementTerms, after: datetime) -> datetime:
    """Return the first daily cutoff later than `after`, in UTC.

    If the clocks skip a cutoff's time in spring, the cutoff is an hour later on that day. If the time occurs twice in
    autumn, the first one counts.
    """
    zone = ZoneInfo(terms.time_zone)
    # Begin on the day before, because a skipped cutoff may be on the next day.
    day = after.astimezone(zone).date() - timedelta(days=1)
    while True:
        found = datetime.combine(day, terms.cutoff, zone).astimezone(UTC)
        if found > after:
            return found
        day += timedelta(days=1)


def pays_at(terms: SettlementTerms, cutoff: datetime) -> bool:
    """Return whether the merchant is paid at this daily cutoff."""
    day = cutoff.astimezone(ZoneInfo(terms.time_zone)).date()
    match terms.payout:
        case PayoutSchedule.DAILY:
            return True
        case PayoutSchedule.WEEKLY:
            return day.weekday() == _MONDAY
        case PayoutSchedule.MONTHLY:
            return day.day == 1


def next_paying_cutoff(terms: SettlementTerms, after: datetime) -> datetime:
    """Return the first cutoff later than `after` at which the merchant is paid."""
    found = next_cutoff(terms, after)
    while not pays_at(terms, found):
        found = next_cutoff(terms, found)
    return found
