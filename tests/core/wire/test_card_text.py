"""core/wire/card_text: masks card numbers in free text, and no other digits."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuota.core.wire.card_text import masked, masked_tree, may_hold_card
from support.properties.steady import steady

CARDS = {
    "4242424242424242": "************4242",
    "4242 4242 4242 4242": "**** **** **** 4242",
    "4242-4242-4242-4242": "****-****-****-4242",
    "3782 822463 10005": "**** ****** *0005",
    "4222222222222": "*********2222",
    "6304000000000000000": "***************0000",
    "4242 - 4242 4242 4242": "**** - **** **** 4242",
    "4242\u20034242\u20034242\u20034242": "****\u2003****\u2003****\u20034242",
    "4242   4242\t4242 4242": "****   ****\t**** 4242",
    "8.4242424242424242": "8.4242424242424242",
    "4242424242424242 4242424242424242": "************4242 ************4242",
    "pay with 4242424242424242, please": "pay with ************4242, please",
    "x4242424242424242y": "x************4242y",
    "2125550187 4242 4242 4242 4242 1227": "2125550187 **** **** **** 4242 1227",
    "4242\u00a04242\u00a04242\u00a04242": "****\u00a0****\u00a0****\u00a04242",
}


@pytest.mark.parametrize("text", [text for text in CARDS if "8." not in text])
def test_a_card_number_is_masked_except_its_last_four_digits(text: str) -> None:
    assert masked(text) == CARDS[text]
    assert may_hold_card(json.dumps({"a": text}).encode())
    assert may_hold_card(json.dumps({"a": text}, ensure_ascii=False).encode())


@pytest.mark.parametrize(
    "text",
    [
        "4242424242424241",
        "424242424242",
        "42424242424242424242",
        "2026-11-22 10:31:02",
        "(212) 555-0187",
        "0198a000-0000-7000-8000-000000000000",
        "12345678-1234-4123-8123-123456789012",
        "d388e8e752ae2ccb60ceb8352e72810de7d8fc641b5eb1b4242424242424803e",
        "cart_hash=4242424242424242dc3da31c62d57bd3",
        "",
    ],
)
def test_text_that_is_no_card_number_is_not_changed(text: str) -> None:
    assert masked(text) == text


def test_keys_and_texts_at_any_depth_are_masked_except_the_excluded_fields() -> None:
    card = "4242424242424242"
    tree = {card: [card, {"sku": card, "deep": {"a": card}}], "number": 4242424242424242}
    clean = masked_tree(tree, frozenset({"sku"}))
    hidden = CARDS[card]
    assert clean == {hidden: [hidden, {"sku": card, "deep": {"a": hidden}}], "number": 4242424242424242}


def _luhn(digits: str) -> bool:
    doubled = [int(d) * (1 + i % 2) for i, d in enumerate(reversed(digits))]
    return sum(d - 9 if d > 9 else d for d in doubled) % 10 == 0


@steady(500)
@given(st.text(alphabet="0123456789", min_size=13, max_size=19))
def test_digits_are_masked_if_and_only_if_they_pass_the_luhn_check(digits: str) -> None:
    assert (masked(digits) != digits) is _luhn(digits)


@steady(300)
@given(st.text(alphabet="0123456789 -ax\u00e9", max_size=80))
def test_the_scan_of_the_raw_body_finds_every_number_that_would_be_masked(text: str) -> None:
    assert len(masked(text)) == len(text)
    if masked(text) != text:
        assert may_hold_card(json.dumps(text).encode())
        assert may_hold_card(json.dumps(text, ensure_ascii=False).encode())


def test_digits_that_are_escaped_in_json_are_checked_too() -> None:
    escaped = "".join(f"\\u00{ord(char):02x}" for char in "4242424242424242")
    assert may_hold_card(f'{{"a":"{escaped}"}}'.encode())
