"""The fees that a merchant pays for captures, and the parts of them that refunds return."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from cuota.core import money
from cuota.core.payout.terms import SettlementTerms, in_force


@dataclass(frozen=True, slots=True)
class CaptureFee:
    """One capture and the fee that it paid. Amounts are in cents."""

    at: datetime
    amount: int
    fee: int


@dataclass(frozen=True, slots=True)
class OrderFees:
    """The fees of an order's captures, and the amount of fees that refunds have returned so far, in cents."""

    captures: tuple[CaptureFee, ...] = ()
    returned: int = 0


@dataclass(frozen=True, slots=True)
class FeeSums:
    """The sums of an order's captures so far, of the parts of their fees that refunds may return, and of the fees returned. In cents."""

    captured: int = 0
    returnable: int = 0
    returned: int = 0

    def to_return(self, refunded: int) -> int:
        """Return the part of the fees that goes back with a refund. `refunded` is the order's total after that refund."""
        if not self.captured:
            return 0
        return max(0, money.share(self.returnable, refunded, self.captured) - self.returned)


def capture_fee(terms: Sequence[SettlementTerms], amount: int, at: datetime) -> int:
    """Return the fee in cents of a capture at this time. `terms` are all versions of the merchant's terms."""
    valid = in_force(terms, at)
    return 0 if valid is None else valid.fee(amount)


def returnable_fee(terms: Sequence[SettlementTerms], capture: CaptureFee) -> int:
    """Return the part of a capture's fee, in cents, that a refund of the whole capture returns: at most the fee that was paid."""
    valid = in_force(terms, capture.at)
    return 0 if valid is None else min(capture.fee, valid.returnable(capture.amount))


def fee_to_return(terms: Sequence[SettlementTerms], fees: OrderFees, refunded: int) -> int:
    """Return the part of the fees, in cents, that goes back with a refund. `refunded` is the order's total after that refund.

    It is computed from everything refunded so far, minus the fees already returned. Several small refunds
    therefore return exactly as much as one large refund. A capture between two refunds may make the share smaller; then nothing is
    returned.
    """
    captured = sum(capture.amount for capture in fees.captures)
    returnable = sum(returnable_fee(terms, capture) for capture in fees.captures)
    return FeeSums(captured, returnable, fees.returned).to_return(refunded)
