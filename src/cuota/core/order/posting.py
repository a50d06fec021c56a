"""One posting recipe for each thing that moves money; docs/ledger.md shows the same table.

Each recipe returns the transfers of one movement. Parts of zero cents are left out, since a transfer is positive.
"""

from __future__ import annotations

from uuid import UUID

from cuota.core.order.ledger import Account, Transfer

RECEIVABLE = Account.CONSUMER_RECEIVABLE
UNCAPTURED = Account.AUTHORIZED_UNCAPTURED
PAYABLE = Account.MERCHANT_PAYABLE
CLEARING = Account.CARD_CLEARING
REFUND_DUE = Account.CONSUMER_REFUND_DUE
PLAN_FEES = Account.PLAN_FEES
BANK = Account.BANK_CLEARING

PostingLine = tuple[Account, Account, int]


def _post(posting: str, cause: UUID, *parts: PostingLine) -> list[Transfer]:
    return [Transfer(posting, cause, debit, credit, amount) for debit, credit, amount in parts if amount]


def authorization(cause: UUID, amount: int, fee: int) -> list[Transfer]:
    """The consumer owes the order and the plan's fee; the merchant's part waits for capture."""
    return _post("authorization", cause, (RECEIVABLE, UNCAPTURED, amount), (RECEIVABLE, PLAN_FEES, fee))


def installment_paid(cause: UUID, amount: int) -> list[Transfer]:
    """A card paid an installment (the first one included): owed becomes money on its way from the card network."""
    return _post("installment_paid", cause, (CLEARING, RECEIVABLE, amount))


def overpaid(cause: UUID, amount: int) -> list[Transfer]:
    """A card paid more than was still owed, since a void or refund cut the installment meanwhile: due back to it."""
    return _post("overpaid", cause, (RECEIVABLE, REFUND_DUE, amount))


def capture(cause: UUID, amount: int) -> list[Transfer]:
    """The merchant has earned it."""
    return _post("capture", cause, (UNCAPTURED, PAYABLE, amount))


def void(cause: UUID, unpaid: int, to_card: int, *, expiry: bool = False) -> list[Transfer]:
    """What is not captured is given up: first it is no longer owed, then paid money is due back to the card."""
    name = "expiry" if expiry else "void"
    return _post(name, cause, (UNCAPTURED, RECEIVABLE, unpaid), (UNCAPTURED, REFUND_DUE, to_card))


def refund(cause: UUID, unpaid: int, to_card: int) -> list[Transfer]:
    """The merchant gives back what it had earned: first off what is owed, then back to the card."""
    return _post("refund", cause, (PAYABLE, RECEIVABLE, unpaid), (PAYABLE, REFUND_DUE, to_card))


def fee_returned(cause: UUID, unpaid: int, to_card: int) -> list[Transfer]:
    """The plan's fee goes back with the purchase, pro rata, the same way."""
    return _post("fee_returned", cause, (PLAN_FEES, RECEIVABLE, unpaid), (PLAN_FEES, REFUND_DUE, to_card))


def card_refund(cause: UUID, amount: int) -> list[Transfer]:
    """The card network took the money back to the consumer's card."""
    return _post("card_refund", cause, (REFUND_DUE, CLEARING, amount))


def payout(cause: UUID, amount: int) -> list[Transfer]:
    """The merchant's bank account was paid."""
    return _post("payout", cause, (PAYABLE, BANK, amount))
