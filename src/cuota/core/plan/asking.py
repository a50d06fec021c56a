"""How often a consumer may ask for a charge or another card: enough for a person, too little for testing cards."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from enum import StrEnum

# At most so many within each window that ends now.
LIMITS = ((timedelta(hours=1), 3), (timedelta(days=1), 10))


class Subject(StrEnum):
    """What an ask is counted for. A phone number stands for its consumer."""

    PLAN = "plan"
    PHONE = "phone"
    CARD = "card"
    NETWORK = "network"  # the client's IP address; of IPv6 its first 64 bits


def again_at(asked: Sequence[datetime], now: datetime) -> datetime | None:
    """When the next ask is allowed, given the earlier ones; None where it is allowed now."""
    latest_first = sorted(asked, reverse=True)
    free = [
        latest_first[most - 1] + window
        for window, most in LIMITS
        if len(latest_first) >= most and latest_first[most - 1] > now - window
    ]
    return max(free, default=None)
