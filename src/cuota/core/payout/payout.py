"""A payout: its states, and the settlement lines that it pays."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from uuid import UUID


class PayoutStatus(StrEnum):
    """The values of a payout's `status`."""

    CREATED = "created"
    SENT = "sent"
    PAID = "paid"
    RETURNED = "returned"


@dataclass(frozen=True, slots=True)
class PayoutEdge:
    """One allowed change of state, and its event. `before` is None for a new payout."""

    before: PayoutStatus | None
    after: PayoutStatus
    event: str
    meaning: str


PAYOUT_EDGES = (
    PayoutEdge(
        None, PayoutStatus.CREATED, "payout.created", "the batch closed with at least the minimum to pay"
    ),
    PayoutEdge(PayoutStatus.CREATED, PayoutStatus.SENT, "payout.sent", "the bank accepted the payment order"),
    PayoutEdge(
        PayoutStatus.CREATED,
        PayoutStatus.RETURNED,
        "payout.returned",
        "the bank refused the order to pay, or the bank account changed before the payout was sent",
    ),
    PayoutEdge(PayoutStatus.SENT, PayoutStatus.PAID, "payout.paid", "the money arrived"),
    PayoutEdge(
        PayoutStatus.SENT, PayoutStatus.RETURNED, "payout.returned", "the merchant's bank sent the money back"
    ),
    PayoutEdge(
        PayoutStatus.PAID,
        PayoutStatus.RETURNED,
        "payout.returned",
        "the merchant's bank sent the money back after it had arrived",
    ),
)


@dataclass(frozen=True, slots=True)
class Payout:
    """A payout. The amount is in cents; the lines from `first_line` to `last_line` are in it. `account_last4` is where it goes.

    `held_at` is set while the provider holds the payout: it is not sent until somebody releases it.
    """

    merchant_id: UUID
    payout_id: UUID
    number: int
    status: PayoutStatus
    amount: int
    currency: str
    first_line: int
    last_line: int
    account_id: UUID
    account_last4: str
    cutoff: datetime
    closed_at: datetime
    arrival_date: date
    sent_at: datetime | None = None
    paid_at: datetime | None = None
    returned_at: datetime | None = None
    return_reason: str | None = None
    held_at: datetime | None = None

    @property
    def line_count(self) -> int:
        """The number of the payout's settlement lines."""
        return self.last_line - self.first_line + 1
