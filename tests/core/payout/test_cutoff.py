"""Cutoffs by a merchant's calendar: its time zone, the days on which clocks change, and the days on which the merchant
is paid."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from itertools import pairwise

import pytest

from cuota.core.payout.cutoff import NO_TERMS, next_cutoff, next_paying_cutoff, pays_at
from cuota.core.payout.terms import PayoutSchedule, SettlementTerms

BEGUN = datetime(2026, 1, 1, tzinfo=UTC)


def terms(zone: str, at: time, payout: PayoutSchedule = PayoutSchedule.DAILY) -> SettlementTerms:
    return SettlementTerms(1, BEGUN, payout=payout, time_zone=zone, cutoff=at)


@pytest.mark.parametrize(
    ("zone", "at", "after", "expected"),
    [
        # Midnight in New York, in winter and in summer.
        ("America/New_York", time(0), "2026-01-10T12:00Z", "2026-01-11T05:00Z"),
        ("America/New_York", time(0), "2026-07-10T12:00Z", "2026-07-11T04:00Z"),
        # The next cutoff is always later than `after`. At the moment of a cutoff, the next one is a day later.
        ("America/New_York", time(0), "2026-01-11T05:00Z", "2026-01-12T05:00Z"),
        ("America/New_York", time(0), "2026-01-11T04:59:59Z", "2026-01-11T05:00Z"),
        # 02:30 does not exist on 8 March 2026, and 01:30 comes twice on 1 November.
        ("America/New_York", time(2, 30), "2026-03-08T06:00Z", "2026-03-08T07:30Z"),
        ("America/New_York", time(1, 30), "2026-11-01T05:00Z", "2026-11-01T05:30Z"),
        ("America/New_York", time(1, 30), "2026-11-01T05:45Z", "2026-11-02T06:30Z"),
        # Time zones far from UTC, in both directions.
        ("Pacific/Kiritimati", time(17), "2026-05-05T03:00Z", "2026-05-06T03:00Z"),
        ("Pacific/Honolulu", time(23, 59), "2026-05-05T09:58Z", "2026-05-05T09:59Z"),
    ],
)
def test_the_next_cutoff_is_at_the_merchant_s_local_time(
    zone: str, at: time, after: str, expected: str
) -> None:
    assert next_cutoff(terms(zone, at), datetime.fromisoformat(after)) == datetime.fromisoformat(expected)


@pytest.mark.parametrize("zone", ["America/New_York", "Europe/Berlin", "Pacific/Apia", "Asia/Kathmandu"])
@pytest.mark.parametrize("at", [time(0), time(1, 30), time(2, 30), time(23, 59, 59)])
def test_each_day_has_one_cutoff_for_ten_years(zone: str, at: time) -> None:
    here, found = terms(zone, at), [BEGUN]
    while found[-1] < BEGUN + timedelta(days=3650):
        found.append(next_cutoff(here, found[-1]))
    gaps = {later - earlier for earlier, later in pairwise(found[1:])}
    assert gaps <= {timedelta(hours=hours) for hours in (23, 24, 25)}


def test_a_weekly_merchant_is_paid_on_mondays_and_a_monthly_one_on_the_first() -> None:
    week = terms("America/New_York", time(17), PayoutSchedule.WEEKLY)
    month = terms("America/New_York", time(17), PayoutSchedule.MONTHLY)
    assert next_paying_cutoff(week, datetime(2026, 1, 10, tzinfo=UTC)) == datetime(
        2026, 1, 12, 22, tzinfo=UTC
    )
    assert next_paying_cutoff(month, datetime(2026, 1, 10, tzinfo=UTC)) == datetime(
        2026, 2, 1, 22, tzinfo=UTC
    )
    # Monday 17:00 in New York is already past 22:00 UTC, and Sunday in Honolulu is Monday in UTC.
    honolulu = terms("Pacific/Honolulu", time(20), PayoutSchedule.WEEKLY)
    assert not pays_at(honolulu, datetime(2026, 1, 12, 6, tzinfo=UTC))
    assert pays_at(honolulu, datetime(2026, 1, 13, 6, tzinfo=UTC))


def test_a_merchant_without_terms_is_paid_daily_at_midnight_in_new_york_without_a_reserve() -> None:
    assert next_paying_cutoff(NO_TERMS, datetime(2026, 1, 10, tzinfo=UTC)) == datetime(
        2026, 1, 10, 5, tzinfo=UTC
    )
    assert (NO_TERMS.minimum, NO_TERMS.reserve, NO_TERMS.fee(10_000)) == (0, 0, 0)
