"""The one formatter of dates that a person reads."""

from __future__ import annotations

from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

import pytest

from cuota.core.dates import day, moment


def test_a_day_has_the_american_format_and_in_documents_its_year() -> None:
    assert day(date(2026, 12, 5)) == "Sat, Dec 5"
    assert day(date(2027, 1, 16)) == "Sat, Jan 16"
    assert day(date(2026, 12, 5), year=True) == "Sat, Dec 5, 2026"


@pytest.mark.parametrize(
    ("hour", "clock"), [(0, "12:07 AM"), (6, "6:07 AM"), (12, "12:07 PM"), (13, "1:07 PM"), (23, "11:07 PM")]
)
def test_a_time_of_day_is_in_twelve_hour_format(hour: int, clock: str) -> None:
    assert moment(datetime(2026, 12, 5, hour, 7, tzinfo=UTC)) == f"Sat, Dec 5 at {clock} UTC"


def test_a_time_has_its_time_zone() -> None:
    at = datetime(2026, 12, 5, 14, tzinfo=UTC).astimezone(ZoneInfo("America/Los_Angeles"))
    assert moment(at) == "Sat, Dec 5 at 6:00 AM PST"
