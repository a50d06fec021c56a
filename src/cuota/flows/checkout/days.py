"""Calendar days in the consumer's time zone."""

from __future__ import annotations

from datetime import date, datetime
from zoneinfo import ZoneInfo


def local_day(now: datetime, zone: str) -> date:
    """Return today's date in a time zone."""
    return now.astimezone(ZoneInfo(zone)).date()
