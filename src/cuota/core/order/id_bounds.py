"""Bounds of the ids of the orders that were created in a time span. The ids are UUIDs of version 7, which begin with their time."""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

FIRST, BEYOND = UUID(int=0), UUID(int=2**128 - 1)
# The time in an order's id differs a little from its creation time. Orders of earlier releases have times of the machines' own clocks.
MARGIN = timedelta(minutes=5)


def id_bounds(created_from: datetime | None, created_to: datetime | None) -> tuple[UUID, UUID]:
    """Return two ids: that of each order in the time span is not below the first one, and below the second one.

    Not for the sandbox: its clock can be moved, but the time in its ids is always the real time.
    """
    low = FIRST if created_from is None else _id_at(created_from, -MARGIN)
    high = BEYOND if created_to is None else _id_at(created_to, MARGIN)
    return low, high


def _id_at(at: datetime, margin: timedelta) -> UUID:
    """Return the lowest id of the time `at` plus `margin`. An id begins with its creation time in milliseconds."""
    milliseconds = int((at.timestamp() + margin.total_seconds()) * 1000)
    return UUID(int=min(max(milliseconds, 0), 2**48 - 1) << 80)
