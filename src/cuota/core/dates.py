"""Dates and times as a person in the United States reads them: the one formatter of every page, message and letter."""

from __future__ import annotations

from datetime import date, datetime


def day(value: date, *, year: bool = False) -> str:
    """`Sat, Dec 5`; with the year `Sat, Dec 5, 2026`, for documents."""
    return f"{value:%a, %b} {value.day}" + (f", {value.year}" if year else "")


def moment(at: datetime) -> str:
    """`Sat, Dec 5 at 6:00 AM PST`, in the time zone that `at` has."""
    return f"{day(at.date())} at {at.hour % 12 or 12}:{at:%M %p %Z}"
