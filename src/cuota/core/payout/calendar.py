"""The bank's calendar: on which days US banks move money (Federal Reserve Bank holidays)."""

from __future__ import annotations

from datetime import date, timedelta

# By year: https://www.frbservices.org/about/holiday-schedules. A holiday on a Sunday is observed on Monday. A holiday on a
# Saturday closes no bank on another day, so it is not listed.
_HOLIDAYS = {
    2024: "01-01 01-15 02-19 05-27 06-19 07-04 09-02 10-14 11-11 11-28 12-25",
    2025: "01-01 01-20 02-17 05-26 06-19 07-04 09-01 10-13 11-11 11-27 12-25",
    2026: "01-01 01-19 02-16 05-25 06-19 09-07 10-12 11-11 11-26 12-25",
    2027: "01-01 01-18 02-15 05-31 07-05 09-06 10-11 11-11 11-25",
    2028: "01-17 02-21 05-29 06-19 07-04 09-04 10-09 11-23 12-25",
    2029: "01-01 01-15 02-19 05-28 06-19 07-04 09-03 10-08 11-12 11-22 12-25",
    2030: "01-01 01-21 02-18 05-27 06-19 07-04 09-02 10-14 11-11 11-28 12-25",
    2031: "01-01 01-20 02-17 05-26 06-19 07-04 09-01 10-13 11-11 11-27 12-25",
    2032: "01-01 01-19 02-16 05-31 07-05 09-06 10-11 11-11 11-25",
    2033: "01-17 02-21 05-30 06-20 07-04 09-05 10-10 11-11 11-24 12-26",
    2034: "01-02 01-16 02-20 05-29 06-19 07-04 09-04 10-09 11-23 12-25",
    2035: "01-01 01-15 02-19 05-28 06-19 07-04 09-03 10-08 11-12 11-22 12-25",
}
FED_HOLIDAYS = frozenset(
    date.fromisoformat(f"{year}-{day}") for year, days in _HOLIDAYS.items() for day in days.split()
)
_SATURDAY = 5


def next_business_day(day: date) -> date:
    """Return the first day after `day` on which banks move money. Holidays are known for 2024 to 2035."""
    found = day + timedelta(days=1)
    while found.weekday() >= _SATURDAY or found in FED_HOLIDAYS:
        found += timedelta(days=1)
    return found
