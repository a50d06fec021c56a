"""core/plan/agreement: the words and numbers that the consumer accepts."""

from __future__ import annotations

import hashlib
from datetime import date

import pytest

from cuota.core.consumer import Address, Profile
from cuota.core.installment import schedule
from cuota.core.plan.agreement import Agreement, agreement
from cuota.core.plan.finance import terms
from support.core.values import TODAY

WHO = Profile("Ana", "Ruiz", "ana@mail.example", Address("1 Main Street", "", "Reno", "NV", "89501"))


def _write(amount: int = 10_003, fee: int = 0, **other: object) -> Agreement:
    values: dict[str, object] = {
        "provider": "Cuota", "merchant": "Shop", "who": WHO, "plan": schedule(amount, fee, TODAY),
        "currency": "USD", "authorization_days": 13, **other,
    }  # fmt: skip
    return agreement(**values)  # type: ignore[arg-type]


def test_the_agreement_names_every_payment_with_its_date() -> None:
    text = _write().text
    assert "You pay $100.03 in 4 payments" in text
    assert (
        "$25.01 on Sat, Nov 21, 2026; $25.01 on Sat, Dec 5, 2026; $25.01 on Sat, Dec 19, 2026; $25.00 on Sat, Jan 2, 2027"
        in text
    )


def test_the_agreement_names_the_parties_and_for_how_many_days_an_authorization_is_valid() -> None:
    text = _write(authorization_days=9).text
    assert "between Ana Ruiz (you) and Cuota (we)" in text
    assert "your order at Shop" in text
    assert "within 9 days" in text


def test_the_agreement_names_the_lender_its_address_and_how_to_revoke_automatic_payments() -> None:
    text = _write(creditor="Oak Credit LLC, 1 Main Street, Reno NV", page="https://pay.example/account").text
    assert "and Oak Credit LLC, 1 Main Street, Reno NV, which does business as Cuota (we)" in text
    assert "You may revoke automatic payments at any time" in text
    assert "at least three business days before a payment" in text
    assert "https://pay.example/account" in text
    assert "To reach us about this agreement, write to Oak Credit LLC, 1 Main Street, Reno NV." in text


def test_the_agreement_of_a_plan_without_a_fee_says_that_there_is_no_cost() -> None:
    assert "There is no interest, no fee and no late fee." in _write().text


def test_the_agreement_of_a_plan_with_a_fee_has_the_truth_in_lending_box() -> None:
    box = terms(schedule(10_000, 400, TODAY))
    text = _write(10_000, 400).text
    assert "The finance charge is $4.00" in text
    assert f"the annual percentage rate {box.apr}%" in text
    assert "payment $74.00" in text
    assert "total of payments $78.00" in text
    assert "no interest" not in text


def test_the_hash_is_the_sha256_of_the_stored_text() -> None:
    written = _write()
    assert written.hash == hashlib.sha256(written.text.encode()).hexdigest()
    assert written.text == "\n\n".join(written.paragraphs)


@pytest.mark.parametrize(
    "other",
    [
        {"amount": 10_004},
        {"fee": 1},
        {"plan": schedule(10_003, 0, date(2026, 11, 22))},
        {"merchant": "Other shop"},
        {"provider": "Other provider"},
        {"currency": "CAD"},
        {"authorization_days": 14},
        {"creditor": "Another lender"},
        {"page": "https://other.example/account"},
        {"who": Profile("Ana", "Díaz", WHO.email, WHO.address)},
    ],
)
def test_an_agreement_with_any_different_word_or_number_has_a_different_hash(
    other: dict[str, object],
) -> None:
    assert _write(**other).hash != _write().hash  # type: ignore[arg-type]


def test_the_same_terms_have_the_same_hash() -> None:
    assert _write(10_000, 400) == _write(10_000, 400)
    assert _write(10_000, 400).hash == _write(10_000, 400).hash
