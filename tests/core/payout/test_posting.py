"""The postings of a merchant's money that belong to no order. docs/ledger.md has the same rows."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuota.core.payout.posting import MERCHANT_POSTINGS, PAYABLE, adjustment

LEDGER = Path(__file__).parents[3] / "docs" / "ledger.md"


@pytest.mark.parametrize("each", MERCHANT_POSTINGS, ids=lambda each: f"{each.name} {each.debit}")
def test_a_posting_has_a_row_in_the_documentation(each: object) -> None:
    name, debit, credit = (getattr(each, part) for part in ("name", "debit", "credit"))
    rows = [[cell.strip(" `") for cell in line.split("|")[1:4]] for line in LEDGER.read_text().splitlines()]
    named = ""
    found = set()
    for row in rows:
        if len(row) == 3:
            named = row[0] or named
            found.add((named, row[1], row[2]))
    assert (name, debit.value, credit.value) in found


def test_a_posting_on_merchant_payable_writes_a_settlement_line_unless_it_is_the_payout_itself() -> None:
    for each in MERCHANT_POSTINGS:
        assert (each.line is not None) == (PAYABLE in {each.debit, each.credit} and each.name != "payout")


def test_a_negative_adjustment_debits_the_merchant_and_a_positive_one_credits_the_merchant() -> None:
    assert (adjustment(-1).debit, adjustment(1).credit) == (PAYABLE, PAYABLE)
