"""An entry about our payment is never dropped: it is recorded, or a person is told to look at it."""

from __future__ import annotations

from uuid import UUID, uuid4

import pytest

from cuota.core.payout.bank_report import BadReport, Reported
from cuota.core.payout.camt053 import NO_REASON, read_camt053
from cuota.core.payout.nacha_return import read_nacha_return
from support.bank.statements import booked, nacha_returns, statement


def test_a_credit_that_names_our_payment_and_nothing_else_is_unclear() -> None:
    name = uuid4().hex
    found = read_camt053(statement(booked("CRDT", "5.00", name)))
    assert found == [Reported(500, NO_REASON, payout_id=UUID(name), unclear=True)]


def test_a_credit_with_the_code_of_a_return_is_a_return() -> None:
    name = uuid4().hex
    entry = booked("CRDT", "123.45", name).replace("DMCT", "RRTN")
    assert read_camt053(statement(entry)) == [Reported(12_345, NO_REASON, payout_id=UUID(name))]


def test_a_debit_that_takes_a_return_back_is_unclear() -> None:
    name = uuid4().hex
    found = read_camt053(statement(booked("DBIT", "123.45", name, reversal=True)))
    assert found == [Reported(12_345, payout_id=UUID(name), unclear=True)]


def test_a_reversed_file_is_unclear() -> None:
    found = read_camt053(statement(booked("CRDT", "200.00", None, batch="CUOTA-1", reversal=True)))
    assert found == [Reported(20_000, file_number=1, unclear=True)]


def test_a_file_is_paid_also_if_the_bank_adds_a_transaction_without_our_name() -> None:
    details = "<TxDtls><Refs><PmtInfId>CUOTA-1</PmtInfId></Refs></TxDtls></NtryDtls>"
    entry = booked("DBIT", "200.00", None, batch="CUOTA-1").replace("</NtryDtls>", details)
    assert read_camt053(statement(entry)) == [Reported(20_000, file_number=1)]


@pytest.mark.parametrize("code", ["R61", "R69", "R75"])
def test_a_dishonored_or_contested_return_is_unclear(code: str) -> None:
    [found], _ = read_nacha_return(nacha_returns((f"799{code}", "011000010000042", 500)))
    assert found.unclear


def test_a_statement_may_be_in_utf_16() -> None:
    text = statement(booked("DBIT", "123.45", uuid4().hex)).decode().replace("UTF-8", "UTF-16")
    assert len(read_camt053(text.encode("utf-16"))) == 1


@pytest.mark.parametrize("encoding", ["utf-7", "nope"])
def test_an_encoding_that_the_parser_does_not_have_is_refused(encoding: str) -> None:
    with pytest.raises(BadReport, match="not complete XML"):
        read_camt053(f"<?xml version='1.0' encoding='{encoding}'?><Document/>".encode())


def test_the_refusal_of_a_document_type_says_so() -> None:
    with pytest.raises(BadReport, match=r"^The file declares a document type"):
        read_camt053(b'<!DOCTYPE x [<!ENTITY a "aaaa">]><x>&a;</x>')
