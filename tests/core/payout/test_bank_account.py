"""The check of the numbers of a US bank account."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuota.core.payout.bank_account import BadBankAccount, BankDetails, read_bank_details
from cuota.core.sandbox import TEST_ACCOUNTS, TEST_ROUTING
from support.properties.steady import steady


# Routing numbers of the Federal Reserve Bank of Boston, JPMorgan Chase, Bank of America, and of Wells Fargo.
@pytest.mark.parametrize("routing", ["011000015", "021000021", "026009593", "121000248"])
def test_a_real_routing_number_is_accepted(routing: str) -> None:
    assert read_bank_details(routing, "1234").routing == routing


@steady(500)
@given(st.sampled_from(["011000015", "021000021", "121000248"]), st.integers(0, 8), st.integers(1, 9))
def test_a_routing_number_with_one_wrong_digit_is_refused(routing: str, place: int, more: int) -> None:
    wrong = routing[:place] + str((int(routing[place]) + more) % 10) + routing[place + 1 :]
    with pytest.raises(BadBankAccount, match="last digit does not match"):
        read_bank_details(wrong, "1234")


@pytest.mark.parametrize(
    "routing",
    [
        "",
        "01100001",
        "0110000155",
        "01100001a",
        "\u0660\u0661\u0661\u0660\u0660\u0660\u0660\u0661\u0665",
        "000000000",
        "011000015\n",
    ],
)
def test_a_text_that_is_no_routing_number_is_refused(routing: str) -> None:
    with pytest.raises(BadBankAccount, match="routing number"):
        read_bank_details(routing, "1234")


@pytest.mark.parametrize("account", ["", "123", "1" * 18, "12a4", "\u0661\u0662\u0663\u0664", "1234\n"])
def test_an_account_number_needs_4_to_17_digits(account: str) -> None:
    with pytest.raises(BadBankAccount, match="4 to 17 digits"):
        read_bank_details("011000015", account)


@pytest.mark.parametrize("account", ["1234", "1" * 17, "0000"])
def test_the_shortest_and_the_longest_account_number_are_accepted(account: str) -> None:
    assert read_bank_details("011000015", account).account == account


def test_numbers_may_be_typed_with_spaces_and_hyphens() -> None:
    assert read_bank_details(" 0110 0001 5", "12-34 56") == BankDetails("011000015", "123456")


def test_the_numbers_of_an_account_are_not_in_its_repr() -> None:
    assert repr(BankDetails("011000015", "987654321")) == "BankDetails(****4321)"


def test_the_sandbox_s_test_accounts_are_valid() -> None:
    for each in TEST_ACCOUNTS:
        assert read_bank_details(TEST_ROUTING, each.number).account == each.number
