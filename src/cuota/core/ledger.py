"""Double-entry bookkeeping. A transfer has a debit account, a credit account and a positive amount, so it always balances."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID


class Account(StrEnum):
    """The chart of accounts. The first five exist for each order."""

    CONSUMER_RECEIVABLE = "consumer_receivable"
    AUTHORIZED_UNCAPTURED = "authorized_uncaptured"
    MERCHANT_PAYABLE = "merchant_payable"
    CARD_CLEARING = "card_clearing"
    CONSUMER_REFUND_DUE = "consumer_refund_due"
    MERCHANT_FEES = "merchant_fees"
    PLAN_FEES = "plan_fees"
    LATE_FEES = "late_fees"
    LOSSES = "losses"
    BANK_CLEARING = "bank_clearing"
    # The amount withheld from the merchant while an order is disputed, and the amount of undecided chargebacks.
    DISPUTES_WITHHELD = "disputes_withheld"
    CHARGEBACKS = "chargebacks"
    # These accounts belong to a merchant, not to an order.
    MERCHANT_RESERVE = "merchant_reserve"
    PAYOUTS_IN_TRANSIT = "payouts_in_transit"


@dataclass(frozen=True, slots=True)
class Transfer:
    """One row of the ledger. `posting` is the name of the recipe, `cause` an id, such as a movement's, charge's or dispute's."""

    posting: str
    cause: UUID
    debit: Account
    credit: Account
    amount: int

    def __post_init__(self) -> None:
        assert self.amount > 0
        assert self.debit is not self.credit


def balance(transfers: list[Transfer], account: Account) -> int:
    """Return the debits minus the credits of one account, in cents."""
    debits = sum(t.amount for t in transfers if t.debit is account)
    return debits - sum(t.amount for t in transfers if t.credit is account)
