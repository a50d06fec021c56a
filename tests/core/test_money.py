"""core/money: exact cents in, exact decimals out."""

from __future__ import annotations

from decimal import Decimal

import pytest

from cuota.core import money
from cuota.core.money import BadAmount


@pytest.mark.parametrize(
    ("value", "cents"),
    [
        (0, 0),
        (10, 1000),
        (Decimal("10.0"), 1000),
        (Decimal("1E1"), 1000),
        (Decimal("1.0E+1"), 1000),
        (Decimal("123.45"), 12345),
        (Decimal("112.0000"), 11200),
        (Decimal("0.01"), 1),
        (Decimal("0.1"), 10),
        (-1, -100),
        (Decimal("-0.01"), -1),
        (Decimal("-0.0"), 0),
        (Decimal("0E+99999999"), 0),
        ("10.00", 1000),
        ("0", 0),
        ("-12.5", -1250),
    ],
)
def test_an_amount_is_read_as_exact_cents(value: object, cents: int) -> None:
    assert money.cents_of(value) == cents


@pytest.mark.parametrize(
    ("typed", "cents"),
    [
        ("5", 500),
        (" 12.5 ", 1250),
        ("$1,234.50", 123450),
        ("1,000,000", 100_000_000),
        ("$ 3", 300),
        ("-$5.00", -500),
        ("0.07", 7),
    ],
)
def test_an_amount_that_a_person_typed_is_read_as_cents(typed: str, cents: int) -> None:
    assert money.typed_cents(typed) == cents


@pytest.mark.parametrize(
    "typed",
    [
        "",
        "1,00",
        "5,0",
        "1,00.00",
        "1,23.50",
        "12,34,567",
        ",100",
        "1,000,00",
        "1.005",
        "1.",
        ".5",
        "1e3",
        "٣",
        "1 2",
        "$",
        "--1",
        "9" * 65,
    ],
)
def test_a_text_that_is_no_amount_is_refused_instead_of_guessed(typed: str) -> None:
    with pytest.raises(money.BadAmount):
        money.typed_cents(typed)


@pytest.mark.parametrize(
    "text", ["9999999999999999.99", "999999999999999999", "12345678901234567.8", "1234567890123456.78"]
)
def test_eighteen_digits_are_read_exactly(text: str) -> None:
    assert money.decimal_from(money.cents_of(Decimal(text))) == Decimal(text)


@pytest.mark.parametrize(
    "text",
    [
        "1234567890123456789",
        "12345678901234567.89",
        "123456789012345678.9",
        "1e18",
        "1e999999999",
        "9" * 5000,
    ],
)
def test_nineteen_digits_are_refused(text: str) -> None:
    with pytest.raises(BadAmount, match="18 digits"):
        money.cents_of(Decimal(text))


@pytest.mark.parametrize("text", ["1.005", "0.001", "1e-3", "1e-400", "31.889999999999997", "0.015"])
def test_more_than_two_decimal_places_in_value_are_refused(text: str) -> None:
    with pytest.raises(BadAmount, match="2 decimal places"):
        money.cents_of(Decimal(text))


def test_trailing_zeros_do_not_count_as_decimal_places() -> None:
    assert money.cents_of(Decimal("7." + "0" * 6000)) == 700


@pytest.mark.parametrize(
    "value",
    [
        "",
        " 1",
        "1 ",
        "+1",
        "01",
        ".5",
        "5.",
        "1e1",
        "1,000.00",
        "0x10",
        "1_000",
        "NaN",
        "Infinity",
        "$1",
        "\u0661",
        "1\n",
    ],
)
def test_a_string_that_is_not_a_plain_decimal_is_refused(value: str) -> None:
    with pytest.raises(BadAmount, match="plain decimal"):
        money.cents_of(value)


def test_a_string_of_more_than_64_characters_is_refused() -> None:
    assert money.cents_of("1." + "0" * 62) == 100
    with pytest.raises(BadAmount):
        money.cents_of("1." + "0" * 63)


@pytest.mark.parametrize("value", [True, False, None, [10], {}, 10.0, b"10"])
def test_a_value_that_is_neither_a_decimal_nor_a_string_is_refused_even_a_float(value: object) -> None:
    with pytest.raises(BadAmount):
        money.cents_of(value)


@pytest.mark.parametrize(("cents", "text"), [(0, "0.00"), (5, "0.05"), (12345, "123.45"), (10000, "100.00")])
def test_amounts_in_answers_have_two_decimal_places(cents: int, text: str) -> None:
    assert str(money.decimal_from(cents)) == text
    assert money.text_of(cents) == text


def test_the_largest_amount_is_printed_exactly() -> None:
    assert str(money.decimal_from(999_999_999_999_999_999)) == "9999999999999999.99"


@pytest.mark.parametrize("cents", [-1, -99, -100, -12345])
def test_the_sign_stands_before_a_negative_amount(cents: int) -> None:
    assert Decimal(money.text_of(cents)) * 100 == cents


def test_text_for_people_has_grouped_dollars_and_other_currencies_with_their_code() -> None:
    assert money.shown(123_450) == "$1,234.50"
    assert money.shown(-5) == "-$0.05"
    assert money.shown(123_450, "CAD") == "CAD 1,234.50"


@pytest.mark.parametrize(
    ("total", "parts"),
    [
        (10_000, [2500, 2500, 2500, 2500]),
        (10_001, [2501, 2500, 2500, 2500]),
        (10_003, [2501, 2501, 2501, 2500]),
        (3, [1, 1, 1, 0]),
        (0, [0, 0, 0, 0]),
    ],
)
def test_the_first_parts_of_a_split_are_one_cent_larger(total: int, parts: list[int]) -> None:
    assert money.split(total, 4) == parts


@pytest.mark.parametrize(
    ("whole", "part", "total", "expected"),
    [
        (400, 2500, 10_000, 100),
        (400, 0, 10_000, 0),
        (401, 10_000, 10_000, 401),
        (1, 4999, 10_000, 0),
        (1, 5000, 10_000, 1),
        (3, 1, 2, 2),
    ],
)
def test_a_share_is_rounded_half_up_and_exact_at_both_ends(
    whole: int, part: int, total: int, expected: int
) -> None:
    assert money.share(whole, part, total) == expected
