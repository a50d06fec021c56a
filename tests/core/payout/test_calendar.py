"""The business days of US banks, compared with the days that the Federal Reserve has published, and with its rules."""

from __future__ import annotations

from datetime import date, timedelta

import pytest

from cuota.core.payout.calendar import FIRST_YEAR, HOLIDAYS, LAST_YEAR, is_business_day, next_business_day

MONDAY, THURSDAY, SATURDAY, SUNDAY = 0, 3, 5, 6
# Either month and day, or month, weekday, and its place in the month (-1 is the last one).
FIXED = ((1, 1), (6, 19), (7, 4), (11, 11), (12, 25))
FLOATING = (
    (1, MONDAY, 3),
    (2, MONDAY, 3),
    (5, MONDAY, -1),
    (9, MONDAY, 1),
    (10, MONDAY, 2),
    (11, THURSDAY, 4),
)


@pytest.mark.parametrize(
    "day",
    [
        "2024-01-01", "2024-01-15", "2024-06-19", "2024-10-14", "2024-11-28", "2025-01-20", "2025-11-11", "2026-02-16",
        "2026-05-25", "2026-06-19", "2026-11-26", "2026-12-25", "2027-01-18", "2028-02-21",
    ],
)  # fmt: skip
def test_a_published_holiday_is_no_business_day(day: str) -> None:
    assert not is_business_day(date.fromisoformat(day))


@pytest.mark.parametrize(
    ("sunday", "observed"),
    [("2027-07-04", "2027-07-05"), ("2033-12-25", "2033-12-26"), ("2034-01-01", "2034-01-02")],
)
def test_a_holiday_on_a_sunday_is_observed_on_monday(sunday: str, observed: str) -> None:
    assert date.fromisoformat(sunday).weekday() == SUNDAY
    assert not is_business_day(date.fromisoformat(observed))


@pytest.mark.parametrize("friday", ["2026-07-03", "2027-06-18", "2027-12-24", "2028-11-10", "2027-12-31"])
def test_banks_are_open_on_the_friday_before_a_holiday_on_saturday(friday: str) -> None:
    assert (date.fromisoformat(friday) + timedelta(days=1)).weekday() == SATURDAY
    assert is_business_day(date.fromisoformat(friday))


def test_saturdays_and_sundays_are_no_business_days() -> None:
    assert not is_business_day(date(2026, 11, 28))
    assert not is_business_day(date(2026, 11, 29))


@pytest.mark.parametrize(
    ("day", "following"),
    [
        ("2026-11-23", "2026-11-24"),
        ("2026-11-27", "2026-11-30"),
        ("2026-11-25", "2026-11-27"),
        ("2027-12-24", "2027-12-27"),
        ("2026-12-24", "2026-12-28"),
        ("2027-07-02", "2027-07-06"),
        ("2026-11-28", "2026-11-30"),
    ],
)
def test_the_next_business_day_skips_weekends_and_holidays(day: str, following: str) -> None:
    assert next_business_day(date.fromisoformat(day)) == date.fromisoformat(following)


@pytest.mark.parametrize("year", range(FIRST_YEAR, LAST_YEAR + 1))
def test_the_listed_holidays_of_each_year_follow_the_rules(year: int) -> None:
    days = [date(year, 1, 1) + timedelta(days=count) for count in range(366)]
    days = [day for day in days if day.year == year]
    observed = [day for day in (_observed(date(year, *fixed)) for fixed in FIXED) if day.weekday() < SATURDAY]
    for month, weekday, which in FLOATING:
        found = [day for day in days if day.month == month and day.weekday() == weekday]
        observed.append(found[which - 1 if which > 0 else which])
    assert {day for day in HOLIDAYS if day.year == year} == set(observed)


def _observed(day: date) -> date:
    return day + timedelta(days=1) if day.weekday() == SUNDAY else day


def test_the_list_of_holidays_covers_the_years_2024_to_2035() -> None:
    assert (FIRST_YEAR, LAST_YEAR) == (2024, 2035)
