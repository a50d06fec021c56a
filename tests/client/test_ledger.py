"""Exports for hledger and beancount: each transaction balances, and these programs accept the files."""

from __future__ import annotations

import re
import subprocess
from decimal import Decimal
from pathlib import Path

from cuota.client import to_beancount, to_hledger
from cuota.client.ledger import ACCOUNTS
from cuota.client.settled import Payout, PayoutLine
from cuota.core.payout.line import LineType
from cuota.core.payout.terms import RefundFee
from support.needed import needed
from support.settlement_book import book

EVIL = ['"; 2026-01-01 open Assets:Evil', "a | b ; c, d: e", "\\", 'x"\n2026-01-01 * "y"', "é😀", "", "= 1"]


def payouts() -> list[tuple[Payout, list[PayoutLine]]]:
    """Return two payouts whose texts contain the syntax of the two programs."""
    moves = [(1, False, 11_996), (1, True, 2_000), *[(2, False, 100 + n) for n in range(len(EVIL))]]
    found = []
    for first in (1, 40):
        made = book(moves, RefundFee.RETURNED, 590, 30, 500, first)
        for number, text in enumerate(EVIL, 4):
            object.__setattr__(made.lines[number], "reference", text)
        found.append((made.payout, made.lines))
    return found


def test_every_type_of_a_line_has_an_account() -> None:
    assert {kind.value for kind in LineType} <= ACCOUNTS.keys()


def test_every_transaction_of_both_formats_balances_and_debits_the_bank_with_the_payouts() -> None:
    given = payouts()
    for text in (to_hledger(given), to_beancount(given)):
        postings = re.findall(r"^    ([A-Z]\S+)  (-?[0-9]+\.[0-9]{2}) USD$", text, re.MULTILINE)
        sums: dict[str, Decimal] = {}
        for (_, first), (_, second) in zip(postings[::2], postings[1::2], strict=True):
            assert Decimal(first) + Decimal(second) == 0
        for account, amount in postings:
            sums[account] = sums.get(account, Decimal(0)) + Decimal(amount)
        assert sums["Assets:Bank"] == sum(payout.amount for payout, _ in given)
        assert sums["Assets:Cuota:Balance"] == 0
        assert len(postings) == 2 * sum(len(lines) + 1 for _, lines in given)


def test_accounts_are_opened_only_once() -> None:
    assert to_beancount([]).count(" open ") == len({*ACCOUNTS.values()}) + 1
    assert to_beancount([], open_accounts=False) == ""


def test_hledger_accepts_the_journal_and_finds_the_deposits(tmp_path: Path) -> None:
    file = tmp_path / "cuota.journal"
    file.write_text(to_hledger(payouts()))
    subprocess.run([needed("hledger"), "check", "-f", file], check=True, capture_output=True)
    said = subprocess.run(
        [needed("hledger"), "balance", "-N", "-f", file, "Assets:Bank"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    assert said.split()[0] == str(sum(payout.amount for payout, _ in payouts()))


def test_beancount_accepts_the_ledger(tmp_path: Path) -> None:
    file = tmp_path / "cuota.beancount"
    file.write_text(to_beancount(payouts()))
    said = subprocess.run([needed("bean-check"), file], check=False, capture_output=True, text=True)
    assert (said.returncode, said.stdout + said.stderr) == (0, "")
