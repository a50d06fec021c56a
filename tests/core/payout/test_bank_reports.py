"""Reports of banks: returned ACH payments, and bank statements."""

from __future__ import annotations

from uuid import UUID

import pytest

from cuota.core.payout.bank_report import BadReport, ChangeNotice, Reported
from cuota.core.payout.camt053 import read_camt053
from cuota.core.payout.nacha_return import read_nacha_return
from support.bank.statements import booked, nacha_returns, statement

PAYOUT = UUID("0192f0c4-0000-7000-8000-00000000002a")
OTHER = UUID("0192f0c4-0000-7000-8000-00000000002b")


def test_a_returned_payment_is_read_with_its_reason_amount_and_trace_number() -> None:
    text = nacha_returns(("799R03", "011000010000042", 12_345), ("799R02", "011000010000043", 1))
    assert read_nacha_return(text)[0] == [
        Reported(12_345, "R03", trace="011000010000042"),
        Reported(1, "R02", trace="011000010000043"),
    ]


def test_a_notification_of_change_is_not_a_return() -> None:
    text = nacha_returns(("798C01", "011000010000042", 0, "1918171614"))
    assert read_nacha_return(text) == ([], [ChangeNotice("011000010000042", "C01", "1918171614")])


def test_a_file_of_returns_that_is_cut_off_after_any_line_is_refused() -> None:
    lines = nacha_returns(("799R03", "011000010000042", 12_345)).splitlines()
    last = next(n for n, line in enumerate(lines) if line.startswith("9"))
    for end in range(last + 1):
        with pytest.raises(BadReport):
            read_nacha_return("\n".join(lines[:end]))
    without_a_line = lines[:3] + lines[4:]
    with pytest.raises(BadReport, match="entries"):
        read_nacha_return("\n".join(without_a_line))


def test_a_booked_debit_is_a_paid_payout_and_a_booked_credit_with_a_reason_is_a_returned_payout() -> None:
    content = statement(
        booked("DBIT", "100.05", PAYOUT.hex),
        booked("CRDT", "100.05", PAYOUT.hex, reason="AC01"),
        booked("CRDT", "7.00", str(OTHER), reversal=True),
    )
    assert read_camt053(content) == [
        Reported(10_005, payout_id=PAYOUT),
        Reported(10_005, "AC01", payout_id=PAYOUT),
        Reported(700, "NARR", payout_id=OTHER),
    ]


def test_a_debit_of_a_whole_file_reports_the_file_s_number() -> None:
    assert read_camt053(statement(booked("DBIT", "30.06", None, batch="CUOTA-7"))) == [
        Reported(3_006, file_number=7)
    ]


def test_entries_that_are_not_about_payouts_are_ignored() -> None:
    content = statement(
        booked("DBIT", "9.99", "NOTPROVIDED"),
        booked("DBIT", "9.99", "RENT-2026-11"),
        booked("DBIT", "100.05", PAYOUT.hex, status="PDNG"),
        booked("DBIT", "30.06", None, batch="OTHER-7"),
    )
    assert read_camt053(content) == []


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no xml",
        b"<Document/>",
        b'<Document xmlns="urn:iso:std:iso:20022:tech:xsd:pain.001.001.09"/>',
        b'<!DOCTYPE x [<!ENTITY a "aaaa">]><x>&a;</x>',
        statement(booked("DBIT", "1e5", PAYOUT.hex)),
        statement(booked("DBIT", "1.005", PAYOUT.hex)),
        statement(booked("DBIT", "1.00", PAYOUT.hex))[:-20],
    ],
)
def test_a_file_that_is_no_bank_statement_is_refused(content: bytes) -> None:
    with pytest.raises(BadReport):
        read_camt053(content)
