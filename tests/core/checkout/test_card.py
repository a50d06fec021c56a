"""core/checkout/card: reads a typed card, and reports all errors at once."""

from __future__ import annotations

from datetime import date

import pytest

from cuota.core.checkout.card import BadCard, passes_luhn, read_card

TODAY = date(2026, 11, 21)
VISA = "4242424242424242"


def _wrong(number: str = VISA, expiry: str = "12/30", cvc: str = "123") -> set[str]:
    with pytest.raises(BadCard) as caught:
        read_card(number, expiry, cvc, TODAY)
    assert all(caught.value.errors.values())
    return set(caught.value.errors)


@pytest.mark.parametrize(
    "number", [VISA, "4000000000000002", "378282246310005", "5555555555554444", "79927398713", "0"]
)
def test_a_number_with_its_check_digit_passes(number: str) -> None:
    assert passes_luhn(number)


def test_a_number_with_one_wrong_digit_does_not_pass() -> None:
    for place in range(len(VISA)):
        others = [VISA[:place] + digit + VISA[place + 1 :] for digit in "0123456789" if digit != VISA[place]]
        assert not any(passes_luhn(other) for other in others)


def test_neighbouring_digits_in_the_wrong_order_do_not_pass() -> None:
    number = "4539578763621486"
    assert passes_luhn(number)
    swapped = [number[:n] + number[n + 1] + number[n] + number[n + 2 :] for n in range(len(number) - 1)]
    assert not any(passes_luhn(other) for other in swapped if other != number)


@pytest.mark.parametrize(
    ("number", "brand", "cvc"),
    [
        ("4242 4242 4242 4242", "visa", "123"),
        ("4222222222222", "visa", "123"),
        ("5555-5555-5555-4444", "mastercard", "123"),
        ("2223003122003222", "mastercard", "123"),
        ("2221000000000009", "mastercard", "123"),
        ("2720000000000005", "mastercard", "123"),
        ("3782 822463 10005", "amex", "1234"),
        ("6011111111111117", "discover", "123"),
        ("6550000000000001", "discover", "123"),
    ],
)
def test_the_brand_is_known_by_its_first_digits(number: str, brand: str, cvc: str) -> None:
    assert passes_luhn("".join(filter(str.isdigit, number))), "the test's own number is a good one"
    assert read_card(number, "12/30", cvc, TODAY).brand == brand


@pytest.mark.parametrize(
    "number",
    [
        "", "4242424242424241", "42424242424242", "42424242424242424242",
        "4242 4242 4242 424x", "\u0664\u0662\u0664\u0662\u0664\u0662\u0664\u0662\u0664\u0662\u0664\u0662\u0664\u0662\u0664\u0662", "\uff14\uff12\uff14\uff12\uff14\uff12\uff14\uff12\uff14\uff12\uff14\uff12\uff14\uff12\uff14\uff12", "4" * 400,
    ],
)  # fmt: skip
def test_text_that_cannot_be_a_card_number_is_reported(number: str) -> None:
    assert _wrong(number=number) == {"card_number"}


@pytest.mark.parametrize(
    "number",
    [
        "30569309025904",
        "2220000000000000",
        "2721000000000004",
        "6430000000000007",
        "9999000000000004",
        "42000000000000",
    ],
)
def test_a_number_of_an_unaccepted_brand_or_with_the_wrong_length_is_refused(number: str) -> None:
    assert passes_luhn(number), "only the brand is at fault"
    assert _wrong(number=number) == {"card_number"}


@pytest.mark.parametrize(
    "typed", ["09/28", "9/28", "09/2028", "0928", "09 28", "09-28", " 09 / 28 ", "092028"]
)
def test_month_and_year_are_read_as_people_type_them(typed: str) -> None:
    card = read_card(VISA, typed, "123", TODAY)
    assert (card.expiry_month, card.expiry_year) == (9, 2028)


@pytest.mark.parametrize(
    "typed",
    [
        "",
        "13/28",
        "00/28",
        "0/28",
        "2028",
        "09/1928",
        "09/028",
        "09/28/01",
        "Sep 28",
        "\u0660\u0669/\u0662\u0668",
        "9",
    ],
)
def test_text_that_is_no_month_and_year_is_reported(typed: str) -> None:
    assert _wrong(expiry=typed) == {"card_expiry"}


def test_a_card_is_valid_through_the_month_printed_on_it() -> None:
    assert read_card(VISA, "11/26", "123", TODAY).expiry_month == 11
    with pytest.raises(BadCard, match="not a card") as caught:
        read_card(VISA, "10/26", "123", TODAY)
    assert "expired" in caught.value.errors["card_expiry"]


@pytest.mark.parametrize("cvc", ["", "12", "1234", "12a", "\u0661\u0662\u0663", "1 23"])
def test_the_security_code_has_three_digits(cvc: str) -> None:
    assert _wrong(cvc=cvc) == {"card_cvc"}


def test_the_security_code_of_amex_has_four_digits() -> None:
    assert read_card("378282246310005", "12/30", " 1234 ", TODAY).cvc == "1234"
    assert _wrong(number="378282246310005", cvc="123") == {"card_cvc"}


def test_all_errors_of_a_card_are_reported_together() -> None:
    assert _wrong("4242", "13/28", "1") == {"card_number", "card_expiry", "card_cvc"}


def test_printing_a_card_shows_neither_number_nor_expiry_nor_code() -> None:
    card = read_card(VISA, "12/30", "987", TODAY)
    printed = f"{card!r} {card}"
    assert not any(secret in printed for secret in ("4242", "987", "2030", "12"))
    assert card.last4 == "4242"


def test_an_error_about_a_card_does_not_contain_its_number() -> None:
    with pytest.raises(BadCard) as caught:
        read_card("4242424242424241", "01/20", "98765", TODAY)
    told = f"{caught.value} {caught.value.errors}"
    assert "4241" not in told
    assert "98765" not in told
