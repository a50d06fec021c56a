"""One posting recipe for each kind of money movement. docs/ledger.md shows the same table.

Each recipe returns the transfers of one movement. Transfers of zero cents are left out, because amounts are positive.
"""

from __future__ import annotations

from uuid import UUID

from cuota.core.ledger import Account, Transfer

RECEIVABLE = Account.CONSUMER_RECEIVABLE
UNCAPTURED = Account.AUTHORIZED_UNCAPTURED
PAYABLE = Account.MERCHANT_PAYABLE
CLEARING = Account.CARD_CLEARING
REFUND_DUE = Account.CONSUMER_REFUND_DUE
PLAN_FEES = Account.PLAN_FEES
MERCHANT_FEES = Account.MERCHANT_FEES
WITHHELD = Account.DISPUTES_WITHHELD
CHARGEBACKS = Account.CHARGEBACKS
LOSSES = Account.LOSSES
BANK = Account.BANK_CLEARING

PostingLine = tuple[Account, Account, int]


def _post(posting: str, cause: UUID, *parts: PostingLine) -> list[Transfer]:
    return [Transfer(posting, cause, debit, credit, amount) for debit, credit, amount in parts if amount]


def authorization(cause: UUID, amount: int, fee: int) -> list[Transfer]:
    """Post an approval: the consumer owes the order and the plan's fee, and the merchant's part waits for a capture."""
    return _post("authorization", cause, (RECEIVABLE, UNCAPTURED, amount), (RECEIVABLE, PLAN_FEES, fee))


def installment_paid(cause: UUID, amount: int) -> list[Transfer]:
    """Post an installment paid by a card: the consumer's debt becomes money in transit from the card network."""
    return _post("installment_paid", cause, (CLEARING, RECEIVABLE, amount))


def overpaid(cause: UUID, amount: int) -> list[Transfer]:
    """Post the excess of a charge, if a void or refund reduced the installment in the meantime. The excess is due back to the card."""
    return _post("overpaid", cause, (RECEIVABLE, REFUND_DUE, amount))


def write_off(cause: UUID, amount: int) -> list[Transfer]:
    """Post an installment that stays unpaid: the consumer's debt becomes a loss."""
    return _post("write_off", cause, (LOSSES, RECEIVABLE, amount))


def write_off_reversed(cause: UUID, amount: int) -> list[Transfer]:
    """Post the part of a void or refund that reduces written-off installments: this part is owed again, and the void or refund removes it."""
    return _post("write_off_reversed", cause, (RECEIVABLE, LOSSES, amount))


def recovery(cause: UUID, amount: int) -> list[Transfer]:
    """Post a written-off installment that the consumer pays after all: the installment is owed again, and the payment settles it."""
    return _post("recovery", cause, (RECEIVABLE, LOSSES, amount))


def capture(cause: UUID, amount: int) -> list[Transfer]:
    """Post a capture: the merchant has earned the amount."""
    return _post("capture", cause, (UNCAPTURED, PAYABLE, amount))


def void(cause: UUID, unpaid: int, to_card: int, *, expiry: bool = False) -> list[Transfer]:
    """Post a void: the unpaid part is no longer owed, and the paid part is due back to the card."""
    name = "expiry" if expiry else "void"
    return _post(name, cause, (UNCAPTURED, RECEIVABLE, unpaid), (UNCAPTURED, REFUND_DUE, to_card))


def refund(cause: UUID, unpaid: int, to_card: int) -> list[Transfer]:
    """Post a refund: the unpaid part is no longer owed, and the paid part is due back to the card."""
    return _post("refund", cause, (PAYABLE, RECEIVABLE, unpaid), (PAYABLE, REFUND_DUE, to_card))


def fee_returned(cause: UUID, unpaid: int, to_card: int) -> list[Transfer]:
    """Post the return of the plan's fee, in proportion to the voided or refunded amount."""
    return _post("fee_returned", cause, (PLAN_FEES, RECEIVABLE, unpaid), (PLAN_FEES, REFUND_DUE, to_card))


def fee_waived(cause: UUID, amount: int) -> list[Transfer]:
    """Post a part of the plan's fee that the consumer need not pay. Cuota gives up this part of its revenue; no merchant bears it."""
    return _post("fee_waived", cause, (PLAN_FEES, RECEIVABLE, amount))


def merchant_fee(cause: UUID, amount: int) -> list[Transfer]:
    """Post the fee that the merchant pays for a capture."""
    return _post("merchant_fee", cause, (PAYABLE, MERCHANT_FEES, amount))


def merchant_fee_returned(cause: UUID, amount: int) -> list[Transfer]:
    """Post the part of the merchant's fees that a refund returns."""
    return _post("merchant_fee_returned", cause, (MERCHANT_FEES, PAYABLE, amount))


def card_refund(cause: UUID, amount: int) -> list[Transfer]:
    """Post a completed refund to the consumer's card."""
    return _post("card_refund", cause, (REFUND_DUE, CLEARING, amount))


def card_refund_failed(cause: UUID, amount: int) -> list[Transfer]:
    """Post a refund that the card's bank sent back after it had succeeded: the money is due to the consumer again."""
    return _post("card_refund_failed", cause, (CLEARING, REFUND_DUE, amount))


def refund_charged_back(cause: UUID, amount: int) -> list[Transfer]:
    """Post a refund that is no longer due, because a lost chargeback returned the same money: that loss was none."""
    return _post("refund_charged_back", cause, (REFUND_DUE, LOSSES, amount))


def refund_paid_otherwise(cause: UUID, amount: int) -> list[Transfer]:
    """Post a refund that the card refused, and that the operator paid to the consumer in another way."""
    return _post("refund_paid_otherwise", cause, (REFUND_DUE, BANK, amount))


def dispute_withheld(cause: UUID, amount: int) -> list[Transfer]:
    """Post the opening of a dispute: the amount is not paid out to the merchant until the dispute ends."""
    return _post("dispute_withheld", cause, (PAYABLE, WITHHELD, amount))


def dispute_released(cause: UUID, amount: int) -> list[Transfer]:
    """Post the return of withheld money to the merchant."""
    return _post("dispute_released", cause, (WITHHELD, PAYABLE, amount))


def dispute_lost(cause: UUID, unpaid: int, to_card: int) -> list[Transfer]:
    """Post the refund that a lost dispute makes. It is a refund with a separate name."""
    return _post("dispute_lost", cause, (PAYABLE, RECEIVABLE, unpaid), (PAYABLE, REFUND_DUE, to_card))


def chargeback(cause: UUID, amount: int) -> list[Transfer]:
    """Post a chargeback: the card network took the money back, and who bears the loss is not decided yet."""
    return _post("chargeback", cause, (CHARGEBACKS, CLEARING, amount))


def chargeback_reversed(cause: UUID, amount: int) -> list[Transfer]:
    """Post a chargeback that was won: the network returns the money."""
    return _post("chargeback_reversed", cause, (CLEARING, CHARGEBACKS, amount))


def chargeback_lost(cause: UUID, refunded: int, fee: int, rest: int) -> list[Transfer]:
    """Post a lost chargeback: the merchant bears the captured amount, and Cuota bears the plan's fee and the rest.

    The consumer already has the money, so nothing goes to a card.
    """
    return [
        *_post("dispute_lost", cause, (PAYABLE, CHARGEBACKS, refunded)),
        *_post("fee_returned", cause, (PLAN_FEES, CHARGEBACKS, fee)),
        *_post("chargeback_loss", cause, (LOSSES, CHARGEBACKS, rest)),
    ]


def chargeback_void(cause: UUID, amount: int) -> list[Transfer]:
    """Post the void of the uncaptured amount that a lost chargeback took back."""
    return _post("chargeback_void", cause, (UNCAPTURED, CHARGEBACKS, amount))
