"""A merchant's terms: the fee of a capture, and the schedule of payouts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, time
from enum import StrEnum

from cuota.core import money

WHOLE = 10_000
"""The number of basis points in one whole."""


class RefundFee(StrEnum):
    """How much of a capture's fee is returned when the capture is refunded."""

    KEPT = "kept"
    PRO_RATA = "pro_rata"
    RETURNED = "returned"


class PayoutSchedule(StrEnum):
    """How often a merchant is paid: each day, each Monday, or on the first of each month."""

    DAILY = "daily"
    WEEKLY = "weekly"
    MONTHLY = "monthly"


@dataclass(frozen=True, slots=True)
class SettlementTerms:
    """One version of a merchant's terms. `percent` and `reserve` are basis points; `fixed` and `minimum` are cents."""

    version: int
    valid_from: datetime
    percent: int = 0
    fixed: int = 0
    refund_fee: RefundFee = RefundFee.KEPT
    payout: PayoutSchedule = PayoutSchedule.DAILY
    minimum: int = 0
    reserve: int = 0
    reserve_days: int = 0
    time_zone: str = "America/New_York"
    cutoff: time = time(0, 0)

    def fee(self, amount: int) -> int:
        """Return the fee of a capture in cents: the percentage, rounded half up, and the fixed part."""
        return money.share(amount, self.percent, WHOLE) + self.fixed

    def returnable(self, amount: int) -> int:
        """Return the part of a capture's fee, in cents, that goes back when the whole capture is refunded."""
        match self.refund_fee:
            case RefundFee.KEPT:
                return 0
            case RefundFee.PRO_RATA:
                return money.share(amount, self.percent, WHOLE)
            case RefundFee.RETURNED:
                return self.fee(amount)


def in_force(versions: Sequence[SettlementTerms], at: datetime) -> SettlementTerms | None:
    """Return the version that is valid at this time. None means that no version is valid yet, so there are no fees."""
    begun = [terms for terms in versions if terms.valid_from <= at]
    return max(begun, key=lambda terms: (terms.valid_from, terms.version), default=None)
