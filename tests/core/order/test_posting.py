"""core/order/posting and core/ledger: each recipe posts what docs/ledger.md says, in double entry."""

from __future__ import annotations

from uuid import UUID

import pytest

from cuota.core.ledger import Account, Transfer, balance
from cuota.core.order import posting
from support.core.values import held

CAUSE = UUID(int=9)
RECEIVABLE, UNCAPTURED, PAYABLE = "consumer_receivable", "authorized_uncaptured", "merchant_payable"
CLEARING, DUE, FEES = "card_clearing", "consumer_refund_due", "plan_fees"

# The table of docs/ledger.md: the recipe, its name in the ledger, and its (debit, credit, cents).
TABLE = [
    (
        posting.authorization(CAUSE, 100, 4),
        "authorization",
        [(RECEIVABLE, UNCAPTURED, 100), (RECEIVABLE, FEES, 4)],
    ),
    (posting.installment_paid(CAUSE, 26), "installment_paid", [(CLEARING, RECEIVABLE, 26)]),
    (posting.capture(CAUSE, 30), "capture", [(UNCAPTURED, PAYABLE, 30)]),
    (posting.void(CAUSE, 20, 5), "void", [(UNCAPTURED, RECEIVABLE, 20), (UNCAPTURED, DUE, 5)]),
    (posting.void(CAUSE, 20, 5, expiry=True), "expiry", [(UNCAPTURED, RECEIVABLE, 20), (UNCAPTURED, DUE, 5)]),
    (posting.refund(CAUSE, 20, 5), "refund", [(PAYABLE, RECEIVABLE, 20), (PAYABLE, DUE, 5)]),
    (posting.fee_returned(CAUSE, 3, 1), "fee_returned", [(FEES, RECEIVABLE, 3), (FEES, DUE, 1)]),
    (posting.merchant_fee(CAUSE, 7), "merchant_fee", [(PAYABLE, "merchant_fees", 7)]),
    (posting.merchant_fee_returned(CAUSE, 2), "merchant_fee_returned", [("merchant_fees", PAYABLE, 2)]),
    (posting.card_refund(CAUSE, 6), "card_refund", [(DUE, CLEARING, 6)]),
]
NAMES = [name for _, name, _ in TABLE]


@pytest.mark.parametrize(("made", "name", "rows"), TABLE, ids=NAMES)
def test_a_recipe_posts_the_transfers_of_its_table(
    made: list[Transfer], name: str, rows: list[tuple[str, str, int]]
) -> None:
    assert [(row.debit, row.credit, row.amount) for row in made] == rows
    assert {(row.posting, row.cause) for row in made} == {(name, CAUSE)}


@pytest.mark.parametrize(("made", "name", "rows"), TABLE, ids=NAMES)
def test_every_recipe_balances(made: list[Transfer], name: str, rows: list[tuple[str, str, int]]) -> None:
    assert sum(held(made).values()) == 0


def test_parts_of_zero_cents_are_left_out() -> None:
    assert len(posting.authorization(CAUSE, 100, 0)) == 1
    assert len(posting.void(CAUSE, 0, 5)) == 1
    assert len(posting.refund(CAUSE, 20, 0)) == 1
    assert posting.fee_returned(CAUSE, 0, 0) == []


def test_the_accounts_are_those_of_the_decisions_document() -> None:
    assert {account.value for account in Account} == {
        RECEIVABLE, UNCAPTURED, PAYABLE, CLEARING, DUE, "merchant_fees", FEES, "late_fees", "losses", "bank_clearing",
        "merchant_reserve", "payouts_in_transit", "disputes_withheld", "chargebacks",
    }  # fmt: skip


@pytest.mark.parametrize("amount", [0, -1])
def test_a_transfer_is_positive(amount: int) -> None:
    with pytest.raises(AssertionError):
        Transfer("capture", CAUSE, Account.LOSSES, Account.CARD_CLEARING, amount)


def test_a_transfer_has_two_sides() -> None:
    with pytest.raises(AssertionError):
        Transfer("capture", CAUSE, Account.LOSSES, Account.LOSSES, 1)


def test_a_balance_is_debits_less_credits() -> None:
    rows = [*posting.authorization(CAUSE, 100, 4), *posting.installment_paid(CAUSE, 26)]
    assert balance(rows, Account.CONSUMER_RECEIVABLE) == 78
    assert balance(rows, Account.CARD_CLEARING) == 26
    assert balance(rows, Account.LOSSES) == 0


def test_after_all_postings_of_an_order_only_the_amount_to_pay_the_merchant_is_left() -> None:
    rows = [
        *posting.authorization(CAUSE, 100, 4), *posting.installment_paid(CAUSE, 104), *posting.capture(CAUSE, 100),
        *posting.refund(CAUSE, 0, 60), *posting.fee_returned(CAUSE, 0, 4),
        *posting.card_refund(CAUSE, 64),
    ]  # fmt: skip
    assert held(rows) == {Account.CARD_CLEARING: 40, Account.MERCHANT_PAYABLE: -40}
