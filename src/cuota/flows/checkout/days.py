"""Calendar days where a consumer lives."""

from __future__ import annotations

from datetime import date, datetime
from zoneinfo import ZoneInfo


def local_day(now: datetime, zone: str) -> date:
    """The day it is now in a time zone."""
    return now.astimezone(ZoneInfo(zone)).date()
