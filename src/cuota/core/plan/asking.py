"""The rate limit on charges and card changes by consumers: enough for a person, too few for testing stolen cards."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from enum import StrEnum

# Pairs of a period and the most attempts that are allowed in that period before now.
LIMITS = ((timedelta(hours=1), 3), (timedelta(days=1), 10))


class Subject(StrEnum):
    """The subjects by which attempts are counted. A phone number stands for its consumer."""

    PLAN = "plan"
    PHONE = "phone"
    CARD = "card"
    NETWORK = "network"  # the client's IP address; for IPv6 its first 64 bits


def again_at(asked: Sequence[datetime], now: datetime) -> datetime | None:
    """Return when the next attempt is allowed, given the times of earlier attempts, or None if it is allowed now."""
    latest_first = sorted(asked, reverse=True)
    free = [
        latest_first[most - 1] + window
        for window, most in LIMITS
        if len(latest_first) >= most and latest_first[most - 1] > now - window
    ]
    return max(free, default=None)
