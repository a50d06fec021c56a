"""The postings of a merchant's money that do not belong to an order. docs/ledger.md shows the same table.

The rows of the ledger are in `merchant_transfers`. core/order/posting.py has the postings of an order.
"""

from __future__ import annotations

from dataclasses import dataclass

from cuota.core.ledger import Account
from cuota.core.payout.line import LineType

PAYABLE = Account.MERCHANT_PAYABLE
RESERVE = Account.MERCHANT_RESERVE
IN_TRANSIT = Account.PAYOUTS_IN_TRANSIT
BANK = Account.BANK_CLEARING


@dataclass(frozen=True, slots=True)
class MerchantPosting:
    """A posting, its two accounts, and the type of the settlement line that it adds, or None."""

    name: str
    debit: Account
    credit: Account
    line: LineType | None = None


# A posting with two rows can have either of two directions.
MERCHANT_POSTINGS = (
    MerchantPosting("reserve_held", PAYABLE, RESERVE, LineType.RESERVE_HELD),
    MerchantPosting("reserve_released", RESERVE, PAYABLE, LineType.RESERVE_RELEASED),
    MerchantPosting("adjustment", PAYABLE, Account.LOSSES, LineType.ADJUSTMENT),
    MerchantPosting("adjustment", Account.LOSSES, PAYABLE, LineType.ADJUSTMENT),
    MerchantPosting("payout", PAYABLE, IN_TRANSIT),
    MerchantPosting("payout_paid", IN_TRANSIT, BANK),
    MerchantPosting("payout_returned", IN_TRANSIT, PAYABLE, LineType.PAYOUT_RETURNED),
    MerchantPosting("payout_returned", BANK, PAYABLE, LineType.PAYOUT_RETURNED),
)


def adjustment(net: int) -> MerchantPosting:
    """Return the posting of an adjustment of `net` cents, which reduces or raises the amount for the merchant."""
    debit = PAYABLE if net < 0 else Account.LOSSES
    return next(each for each in MERCHANT_POSTINGS if each.name == "adjustment" and each.debit is debit)
