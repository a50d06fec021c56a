"""Formats dates and times for people in the United States, on every page and in every message and letter."""

from __future__ import annotations

from datetime import date, datetime


def day(value: date, *, year: bool = False) -> str:
    """Format a date as `Sat, Dec 5`, or with the year as `Sat, Dec 5, 2026`, for documents."""
    return f"{value:%a, %b} {value.day}" + (f", {value.year}" if year else "")


def month(value: date) -> str:
    """Format a month, such as "November 2026"."""
    return f"{value:%B %Y}"


def stamp(at: datetime) -> str:
    """Format an instant for a list, as `Dec 5, 2026, 6:00 AM`, in its own time zone."""
    return f"{at:%b} {at.day}, {at.year}, {at.hour % 12 or 12}:{at:%M %p}"


def time_of_day(at: datetime) -> str:
    """Format the time of an instant as `6:00 AM PST`, in its own time zone."""
    return f"{at.hour % 12 or 12}:{at:%M %p %Z}"


def exact(at: datetime) -> str:
    """Format an instant for a log, as `Dec 5, 2026, 6:00:07 AM`, in its own time zone."""
    return f"{at:%b} {at.day}, {at.year}, {at.hour % 12 or 12}:{at:%M:%S %p}"


def moment(at: datetime) -> str:
    """Format an instant as `Sat, Dec 5 at 6:00 AM PST`, in its own time zone."""
    return f"{day(at.date())} at {time_of_day(at)}"
