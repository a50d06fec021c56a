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
def test_the_texts_are_whole_sentences_to_the_consumer_without_blame(code: str) -> None:
    for text in (sentence(code), sentence(code, "$2,000.00")):
        assert re.fullmatch(r"[A-Z].*\.", text)
        assert not re.search(r"[{}_]|fraud|fault|suspicious|must|score|consumer", text)
        assert re.search(r"\b(you|your|yours|us|we)\b", text, re.IGNORECASE)


def test_no_two_codes_have_the_same_words() -> None:
    assert len({sentence(code) for code in DECLINE_CODES}) == len(DECLINE_CODES)


def test_the_text_about_the_limit_has_the_amount_if_it_is_known() -> None:
    assert "you would owe us more than $2,000.00, the most that we can offer you" in sentence(
        "over_limit", "$2,000.00"
    )
    assert "you would owe us more than we can offer you at present." in sentence("over_limit")


def test_the_text_of_the_limit_s_amount_is_used_unchanged() -> None:
    assert "{limit}" in sentence("over_limit", "{limit}")


def test_the_letter_lists_reasons_in_their_order() -> None:
    assert sentences(("high_amount", "other_phone")) == [sentence("high_amount"), sentence("other_phone")]


def test_the_letter_has_the_decision_its_reasons_and_the_consumer_s_rights() -> None:
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


def test_the_letter_has_the_equal_credit_opportunity_notice_and_names_the_authority() -> None:
    text = _letter("high_amount")
    for ground in (
        "race", "color", "religion", "national origin", "sex", "marital status", "age", "public assistance",
        "Consumer Credit Protection Act",
    ):  # fmt: skip
        assert ground in text
    assert AGENCY in text


def test_a_letter_with_one_reason_uses_the_singular() -> None:
    assert "The principal reason was:\n\n1. " in _letter("high_amount")


def test_only_a_consumer_who_was_declined_for_the_shop_s_data_is_told_of_the_right_to_know_that_data() -> (
    None
):
    right = "You have the right to know what that was"
    assert right in _letter("high_amount", "merchant_information")
    assert right not in _letter("high_amount")


def test_a_code_without_words_is_an_error_not_an_empty_reason() -> None:
    with pytest.raises(KeyError):
        _letter("within_limit")
