"""Writes NACHA files for the ACH network of the United States: credits to companies with an addendum (CCD+).

A file has lines of 94 characters. The number of lines is a multiple of ten. The field positions are those of the Nacha
Operating Rules, Appendix Three (ACH Record Format Specifications). The file has credits only; the bank debits the
originator's account with their sum.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, datetime

from cuota.core import money
from cuota.core.payout.arrival import BANK_ZONE
from cuota.core.payout.bank_order import BadCredit, Credit, Originator, plain

CREDITS_ONLY = "220"
CHECKING_CREDIT = "22"
MOST_CENTS = 10**10 - 1
MOST_FILE_CENTS = 10**12 - 1
_LINE = 94
_BLOCK = 10
# A letter or digit distinguishes several files of one day.
_MODIFIERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
_BATCH = 1


def nacha_file(
    originator: Originator, payments: Sequence[Credit], file_number: int, made_at: datetime, effective: date
) -> str:
    """Return a file with one batch of credits. `file_number` counts all files. Raises BadCredit.

    A file has no time zone, so its date and time are those of the bank. A file that is dated on its effective day asks for same-day ACH.
    """
    assert payments
    made_at = made_at.astimezone(BANK_ZONE)
    lines = [_file_header(originator, file_number, made_at), _batch_header(originator, made_at, effective)]
    for credit in sorted(payments, key=lambda each: trace_of(originator, each)):
        lines += _entry(originator, credit)
    count = 2 * len(payments)
    hashed = sum(int(credit.routing[:8]) for credit in payments) % 10**10
    total = sum(credit.amount for credit in payments)
    sums = f"{hashed:010d}{0:012d}{total:012d}"
    if total > MOST_FILE_CENTS:
        raise BadCredit("a NACHA file can hold at most 9,999,999,999.99; make two files")
    lines.append(
        f"8{CREDITS_ONLY}{count:06d}{sums}{_company_id(originator)}{'':19}{'':6}{originator.routing[:8]}{_BATCH:07d}"
    )
    blocks = -(-(len(lines) + 1) // _BLOCK)
    lines.append(f"9{_BATCH:06d}{blocks:06d}{count:08d}{sums}{'':39}")
    lines += ["9" * _LINE] * (blocks * _BLOCK - len(lines))
    assert all(len(line) == _LINE for line in lines)
    return "\r\n".join(lines) + "\r\n"


def trace_of(originator: Originator, credit: Credit) -> str:
    """Return the trace number of a payment: eight digits of the bank and the last seven of the order number. A return names it."""
    return f"{originator.routing[:8]}{credit.order_number % 10**7:07d}"


def _company_id(originator: Originator) -> str:
    return f"{plain(originator.company_id, 10):<10}"


def _file_header(originator: Originator, file_number: int, made_at: datetime) -> str:
    modifier = _MODIFIERS[file_number % len(_MODIFIERS)]
    return (
        f"101 {originator.routing}{plain(originator.company_id, 10):>10}{made_at:%y%m%d%H%M}{modifier}094101"
        f"{plain(originator.bank, 23):<23}{plain(originator.company, 23):<23}{file_number % 10**8:08d}"
    )


def _batch_header(originator: Originator, made_at: datetime, effective: date) -> str:
    return (
        f"5{CREDITS_ONLY}{plain(originator.company, 16):<16}{'':20}{_company_id(originator)}CCD{'PAYOUT':<10}"
        f"{made_at:%y%m%d}{effective:%y%m%d}{'':3}1{originator.routing[:8]}{_BATCH:07d}"
    )


def _entry(originator: Originator, credit: Credit) -> list[str]:
    if credit.currency != "USD":
        raise BadCredit(f"a NACHA file holds US dollars only, not {credit.currency}")
    if not 0 < credit.amount <= MOST_CENTS:
        raise BadCredit(f"a NACHA payment is at most {money.text_of(MOST_CENTS)}")
    trace = trace_of(originator, credit)
    # The segment "remittance advice" of ANSI X12, which companies' bookkeeping reads.
    addendum = f"RMR*IK*{credit.payout_id}**{money.text_of(credit.amount)}\\"
    entry = (
        f"6{CHECKING_CREDIT}{credit.routing}{credit.account:<17}{credit.amount:010d}{credit.order_number:<15}"
        f"{plain(credit.name, 22):<22}{'':2}1{trace}"
    )
    return [entry, f"705{addendum:<80}0001{trace[8:]}"]
