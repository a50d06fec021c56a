"""Settlement lines: the effect of each movement on the merchant's money."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID


class LineType(StrEnum):
    """The types of a settlement line."""

    CAPTURE = "capture"
    REFUND = "refund"
    FEE = "fee"
    FEE_RETURNED = "fee_returned"
    DISPUTE_WITHHELD = "dispute_withheld"
    DISPUTE_RELEASED = "dispute_released"
    DISPUTE_LOST = "dispute_lost"
    RESERVE_HELD = "reserve_held"
    RESERVE_RELEASED = "reserve_released"
    ADJUSTMENT = "adjustment"
    PAYOUT_RETURNED = "payout_returned"


@dataclass(frozen=True, slots=True)
class SettlementLine:
    """One line. Amounts are cents, and negative if they reduce the payout; `net` is `gross + fee`.

    Every row of the ledger that debits or credits merchant_payable belongs to exactly one line: the line of its posting and
    its cause. `sequence` is the position in the merchant's feed of the event that reported the movement.
    """

    number: int
    type: LineType
    cause: UUID
    order_id: UUID | None
    merchant_reference: str | None
    reference: str | None
    gross: int
    fee: int
    currency: str
    at: datetime
    sequence: int | None

    @property
    def net(self) -> int:
        """The amount that the line adds to the payout, in cents."""
        return self.gross + self.fee
