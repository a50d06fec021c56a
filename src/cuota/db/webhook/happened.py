"""A stored event of any kind."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True)
class Happened:
    """One event of an order, a payout or a bank account, as stored. The amount is in cents."""

    sequence: int
    type: str
    operation: str | None
    amount: int
    reference: str | None
    success: bool
    message: str | None
    at: datetime
