"""When the bank pays a payout, and when the service looks a payout up at the bank."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest

from cuota.core.payout.arrival import (
    LONGEST_WAIT,
    at_opening,
    business_days_after,
    day_at_bank,
    next_look,
    retry_at,
)
from cuota.core.payout.payout import PayoutStatus

# A Monday, 07:00 in New York. Thursday of that week is Thanksgiving.
MONDAY = datetime(2026, 11, 23, 12, 0, tzinfo=UTC)


def test_the_bank_opens_at_nine_in_new_york_in_summer_and_winter() -> None:
    assert at_opening(date(2026, 7, 1)).astimezone(UTC).hour == 13
    assert at_opening(date(2026, 12, 1)).astimezone(UTC).hour == 14


def test_the_bank_s_business_day_ends_at_midnight_in_new_york() -> None:
    assert day_at_bank(datetime(2026, 11, 24, 4, 59, tzinfo=UTC)) == date(2026, 11, 23)
    assert day_at_bank(datetime(2026, 11, 24, 5, 0, tzinfo=UTC)) == date(2026, 11, 24)


def test_business_days_are_counted_without_holidays_and_weekends() -> None:
    assert business_days_after(date(2026, 11, 24), 3) == date(2026, 11, 30)


def test_a_sent_payout_is_looked_up_when_it_should_have_arrived() -> None:
    assert next_look(PayoutStatus.SENT, MONDAY, date(2026, 11, 24), MONDAY) == at_opening(date(2026, 11, 24))


def test_a_late_payout_is_looked_up_every_hour_and_after_a_day_on_each_business_day() -> None:
    arrival = at_opening(date(2026, 11, 24))
    assert next_look(PayoutStatus.SENT, MONDAY, date(2026, 11, 24), arrival) == arrival + timedelta(hours=1)
    much_later = arrival + timedelta(days=365)
    again = next_look(PayoutStatus.SENT, MONDAY, date(2026, 11, 24), much_later)
    assert again is not None
    assert much_later < again <= much_later + timedelta(days=5)


def test_a_paid_payout_is_looked_up_on_five_business_days_and_then_never_again() -> None:
    paid = now = at_opening(date(2026, 11, 24))
    looks = []
    while (look := next_look(PayoutStatus.PAID, paid, date(2026, 11, 24), now)) is not None:
        looks.append(look.date())
        now = look
    assert looks == [
        date(2026, 11, 25),
        date(2026, 11, 27),
        date(2026, 11, 30),
        date(2026, 12, 1),
        date(2026, 12, 2),
    ]


def test_a_returned_payout_is_not_looked_up_again() -> None:
    assert next_look(PayoutStatus.RETURNED, MONDAY, date(2026, 11, 24), MONDAY) is None


@pytest.mark.parametrize(
    ("tries", "seconds"), [(0, 10), (1, 10), (2, 20), (3, 40), (9, 2560), (10, 3600), (1000, 3600)]
)
def test_the_delay_before_the_next_call_doubles_after_each_failure_up_to_an_hour(
    tries: int, seconds: int
) -> None:
    assert retry_at(tries, MONDAY) == MONDAY + timedelta(seconds=seconds)
    assert timedelta(seconds=seconds) <= LONGEST_WAIT
