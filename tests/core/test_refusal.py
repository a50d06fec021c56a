"""core/refusal and core/merchant: stable codes, and the range of an order's amount."""

from __future__ import annotations

import pytest

from cuota.core.merchant import BodyProfile, Merchant, require_in_range
from cuota.core.refusal import Code, FieldError, Refused
from support.core.values import MERCHANT

SHOP = Merchant(MERCHANT, "Shop", 100, 200_000, True, BodyProfile.STRICT, "USD", ())

# The codes of section 3 of the decisions document. Merchants' programs depend on them.
DECIDED = """malformed_request validation_failed amount_out_of_range unauthorized invalid_signature origin_not_registered
order_not_found refund_exceeds_captured capture_exceeds_authorized void_exceeds_uncaptured duplicate_reference
missing_reference invalid_amount order_not_completed authorization_expired body_too_large rate_limited unavailable
idempotency_key_reused"""


@pytest.mark.parametrize("code", DECIDED.split())
def test_every_code_of_the_decisions_document_exists(code: str) -> None:
    assert Code(code) == code


def test_a_refusal_has_its_code_its_text_and_only_the_given_facts() -> None:
    refused = Refused(Code.INVALID_AMOUNT, "amount is required.")
    assert (refused.code, refused.message, str(refused)) == (
        "invalid_amount",
        "amount is required.",
        "amount is required.",
    )
    assert (refused.errors, refused.facts, refused.retry_after) == ((), {}, None)


def test_two_refusals_do_not_share_one_dictionary_of_facts() -> None:
    first = Refused(Code.INVALID_AMOUNT, "")
    first.facts["balances"] = {}
    assert Refused(Code.INVALID_AMOUNT, "").facts == {}


@pytest.mark.parametrize("amount", [100, 101, 200_000])
def test_the_merchants_minimum_and_maximum_are_both_allowed(amount: int) -> None:
    require_in_range(SHOP, amount)


@pytest.mark.parametrize("amount", [1, 99, 200_001, 10**20])
def test_an_amount_outside_the_range_is_refused_and_the_refusal_names_the_range(amount: int) -> None:
    with pytest.raises(Refused) as caught:
        require_in_range(SHOP, amount)
    assert caught.value.code is Code.AMOUNT_OUT_OF_RANGE
    assert "1.00 to 2000.00" in caught.value.message
    assert caught.value.errors == (FieldError("amount", "out_of_range", "must be from 1.00 to 2000.00"),)
