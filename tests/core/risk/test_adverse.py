"""core/risk/adverse: every reason to decline has a text for the consumer, and the letter contains the statements that the law requires."""

from __future__ import annotations

import re
from datetime import date

import pytest

from cuota.core.risk.adverse import AGENCY, SENTENCES, letter, sentence, sentences
from cuota.core.risk.decision import APPROVAL_CODES, DECLINE_CODES

CREDITOR = "Acme Lending LLC, 1 Main Street, Springfield, IL 62701"


def _letter(*reasons: str, limit_text: str = "") -> str:
    day = date(2026, 11, 21)
    paragraphs = letter(
        CREDITOR, "Pay in four", "Ana Ruiz", "Shoe Shop", day, "$120.00", reasons, limit_text=limit_text
    )
    assert all(paragraphs)
    return "\n\n".join(paragraphs)


def test_every_code_that_declines_has_words_and_no_code_of_approvals_has() -> None:
    assert set(SENTENCES) == set(DECLINE_CODES)
    assert not set(SENTENCES) & set(APPROVAL_CODES)
    assert len(set(DECLINE_CODES)) == len(DECLINE_CODES)


@pytest.mark.parametrize("code", DECLINE_CODES)
def test_the_words_are_whole_sentences_to_the_consumer_without_blame(code: str) -> None:
    for text in (sentence(code), sentence(code, "$2,000.00")):
        assert re.fullmatch(r"[A-Z].*\.", text)
        assert not re.search(r"[{}_]|fraud|fault|suspicious|must|score|consumer", text)
        assert re.search(r"\b(you|your|yours|us|we)\b", text, re.IGNORECASE)


def test_no_two_codes_have_the_same_words() -> None:
    assert len({sentence(code) for code in DECLINE_CODES}) == len(DECLINE_CODES)


def test_over_the_limit_says_the_number_where_it_is_known() -> None:
    assert "you would owe us more than $2,000.00, the most that we can offer you" in sentence(
        "over_limit", "$2,000.00"
    )
    assert "you would owe us more than we can offer you at present." in sentence("over_limit")


def test_a_limit_is_taken_word_for_word() -> None:
    assert "{limit}" in sentence("over_limit", "{limit}")


def test_reasons_are_told_in_their_order() -> None:
    assert sentences(("high_amount", "other_phone")) == [sentence("high_amount"), sentence("other_phone")]


def test_the_letter_says_what_was_decided_why_and_what_the_consumer_may_ask() -> None:
    text = _letter("over_limit", "late_payments", limit_text="$2,000.00")
    assert text.startswith("Dear Ana Ruiz,\n\n")
    assert "On Sat, Nov 21, 2026 you asked us to pay for your order of $120.00 at Shoe Shop" in text
    assert "We could not approve it. Nothing was charged." in text
    first, second = sentence("over_limit", "$2,000.00"), sentence("late_payments")
    assert f"The principal reasons were, the weightiest first:\n\n1. {first}\n\n2. {second}\n\n" in text
    assert "no consumer report" in text
    assert "within 60 days" in text
    assert "free of charge" in text
    assert f"Our address: {CREDITOR}." in text


def test_the_letter_has_the_notice_of_equal_credit_opportunity_and_who_sees_to_it() -> None:
    text = _letter("high_amount")
    for ground in (
        "race", "color", "religion", "national origin", "sex", "marital status", "age", "public assistance",
        "Consumer Credit Protection Act",
    ):  # fmt: skip
        assert ground in text
    assert AGENCY in text


def test_one_reason_is_called_one() -> None:
    assert "The principal reason was:\n\n1. " in _letter("high_amount")


def test_only_who_was_declined_by_the_shops_words_is_told_of_the_right_to_know_them() -> None:
    right = "You have the right to know what that was"
    assert right in _letter("high_amount", "merchant_information")
    assert right not in _letter("high_amount")


def test_a_code_without_words_is_an_error_not_an_empty_reason() -> None:
    with pytest.raises(KeyError):
        _letter("within_limit")
