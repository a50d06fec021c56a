"""The days on which US banks move money: the business days of the Federal Reserve."""

from __future__ import annotations

from datetime import date, timedelta

# The holidays of the Federal Reserve Banks on weekdays, as observed. https://www.frbservices.org/about/holiday-schedules lists
# the next years. Later years follow the rules of https://www.federalreserve.gov/aboutthefed/k8.htm:
# a holiday on a Sunday is observed on Monday; for a holiday on a Saturday the banks are open on the Friday before it.
_OBSERVED = {
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
HOLIDAYS = frozenset(
    date.fromisoformat(f"{year}-{day}") for year, days in _OBSERVED.items() for day in days.split()
)
FIRST_YEAR, LAST_YEAR = min(_OBSERVED), max(_OBSERVED)
_SATURDAY = 5


def is_business_day(day: date) -> bool:
    """Return whether US banks settle payments on this day. Outside the listed years only weekends are known."""
    return day.weekday() < _SATURDAY and day not in HOLIDAYS


def next_business_day(day: date) -> date:
    """Return the first business day after this day."""
    day += timedelta(days=1)
    while not is_business_day(day):
        day += timedelta(days=1)
    return day
