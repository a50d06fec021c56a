"""Writes payouts as journals of the accounting programs hledger and beancount. Each line is one balanced transaction."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from datetime import date
from decimal import Decimal

from cuota.client.settled import Payout, PayoutLine

BALANCE, BANK = "Assets:Cuota:Balance", "Assets:Bank"
OPENED = date(1970, 1, 1)
# The account on the other side of a line.
ACCOUNTS = {
    "capture": "Income:Sales",
    "refund": "Income:Refunds",
    "fee": "Expenses:Cuota:Fees",
    "fee_returned": "Expenses:Cuota:Fees",
    "reserve_held": "Assets:Cuota:Reserve",
    "reserve_released": "Assets:Cuota:Reserve",
    "adjustment": "Income:Cuota:Adjustments",
    "payout_returned": BANK,
    "dispute_withheld": "Assets:Cuota:Disputed",
    "dispute_released": "Assets:Cuota:Disputed",
    "dispute_lost": "Expenses:Cuota:Disputes",
}
_NOT_PRINTED = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]+")
_MEANS_SOMETHING = re.compile(r"[;|,:]+")
PayoutWithLines = tuple[Payout, Iterable[PayoutLine]]


def to_hledger(payouts: Iterable[PayoutWithLines]) -> str:
    """Return a journal for hledger. `payouts` has each payout with its lines."""
    return "".join(_hledger(payouts))


def _hledger(payouts: Iterable[PayoutWithLines]) -> Iterator[str]:
    for payout, lines in payouts:
        for line in lines:
            text = _hledger_text(f"{line.merchant_reference} {line.reference}")
            yield f"{_day(payout, line)} * Cuota {line.type.replace('_', ' ')} | {text}\n"
            tags = {"line": line.line_id, "order": line.order_id, "payout": payout.payout_id}
            yield f"    ; {', '.join(f'{name}:{value}' for name, value in tags.items() if value)}\n"
            yield _postings(BALANCE, ACCOUNTS[line.type], line.net, payout.currency)
        yield f"{payout.arrival_date} * Cuota payout | {payout.payout_id}\n"
        yield _postings(BANK, BALANCE, payout.amount, payout.currency)


def to_beancount(payouts: Iterable[PayoutWithLines], *, open_accounts: bool = True) -> str:
    """Return a ledger for beancount. With `open_accounts`, it begins by opening the accounts, which is needed only once."""
    opened = sorted({BALANCE, BANK, *ACCOUNTS.values()}) if open_accounts else []
    return "".join([f"{OPENED} open {account}\n" for account in opened] + list(_beancount(payouts)))


def _beancount(payouts: Iterable[PayoutWithLines]) -> Iterator[str]:
    for payout, lines in payouts:
        for line in lines:
            text = _beancount_text(f"{line.merchant_reference} {line.reference}")
            yield f'\n{_day(payout, line)} * "Cuota {line.type.replace("_", " ")}" "{text}"\n'
            tags = {"line": line.line_id, "order": line.order_id, "payout": payout.payout_id}
            yield "".join(f'  {name}: "{value}"\n' for name, value in tags.items() if value)
            yield _postings(BALANCE, ACCOUNTS[line.type], line.net, payout.currency)
        yield f'\n{payout.arrival_date} * "Cuota payout" "{payout.payout_id}"\n'
        yield _postings(BANK, BALANCE, payout.amount, payout.currency)


def _postings(to: str, other: str, amount: Decimal, currency: str) -> str:
    return f"    {to}  {amount:.2f} {currency}\n    {other}  {-amount:.2f} {currency}\n"


def _day(payout: Payout, line: PayoutLine) -> date:
    """Return the day of a line, in UTC."""
    return payout.arrival_date if line.at is None else line.at.date()


def _hledger_text(text: str) -> str:
    """Return a text without the characters that have a meaning in a journal."""
    return _MEANS_SOMETHING.sub(" ", _NOT_PRINTED.sub(" ", text)).strip()


def _beancount_text(text: str) -> str:
    return _NOT_PRINTED.sub(" ", text).strip().replace("\\", "\\\\").replace('"', '\\"')
