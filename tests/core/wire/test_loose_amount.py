"""Amounts as shop plugins send them: grouped text and float noise are read as the intended cents. Other texts are
refused."""

from __future__ import annotations

import json
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuota.core.money import BadAmount, cents_of
from cuota.core.wire.loose_amount import plain_amount
from cuota.core.wire.strict_json import read_json
from support.properties.steady import STEADY


def read(value: object) -> int:
    return cents_of(plain_amount(value))


@pytest.mark.parametrize(
    ("sent", "cents"),
    [
        ("1,234.50", 123450),
        ("1,234", 123400),
        ("12,345,678.90", 1234567890),
        ("123,456.7", 12345670),
        ("12.65", 1265),
        (Decimal("12.649999999999999"), 1265),
        ("12.649999999999999", 1265),
        (Decimal("0.30000000000000004"), 30),
        (Decimal("12.650001"), 1265),
        (Decimal("12.649999"), 1265),
        (Decimal("-1.7763568394002505E-15"), 0),
        ("1,234.4999999999999", 123450),
        (12, 1200),
    ],
)
def test_an_amount_of_a_plugin_is_read_as_the_intended_cents(sent: object, cents: int) -> None:
    assert read(sent) == cents


@pytest.mark.parametrize(
    "sent",
    [
        "1,23.50", "1234,50", "1.234,50", "12,34", ",123", "1,234,", "1,,234", "1,2345", "12345,678.90", "0,123.00",
        "1 234.50", "1'234.50", "1_234.50", "1,234.50 USD", "$1,234.50", "+1,234.50", "1e3", "1,234e1", "٣,٤٥٦.00", "",
        " 12.65", "12.6500011", "12.648", Decimal("12.6500011"), Decimal("12.655"), Decimal("1.005"),
        Decimal("1e9999999"), Decimal("0.00000100000000000000000000000000000001"), "1," + "000," * 20 + "000", True, None,
        [], {},
    ],
)  # fmt: skip
def test_any_looser_text_is_no_amount(sent: object) -> None:
    assert plain_amount(sent) is sent
    with pytest.raises(BadAmount):
        read(sent)


def test_a_negative_amount_keeps_its_sign() -> None:
    assert read("-1,234.50") == -123450
    assert read(Decimal("-12.649999999999999")) == -1265


CENTS = st.integers(min_value=1, max_value=2_000_000)


@STEADY
@given(st.lists(CENTS, min_size=1, max_size=30), st.data())
def test_a_total_minus_refunds_that_a_shop_computes_in_floats_is_read_as_exact_cents(
    cart: list[int], data: st.DataObject
) -> None:
    """Compute like PHP and JavaScript shops: sum prices times quantities as binary floats, and subtract the refunds."""
    quantities = data.draw(st.lists(st.integers(1, 9), min_size=len(cart), max_size=len(cart)))
    total = 0.0
    for price, quantity in zip(cart, quantities, strict=True):
        total += price / 100 * quantity
    exact = sum(price * quantity for price, quantity in zip(cart, quantities, strict=True))
    refunded = data.draw(st.lists(st.integers(1, exact), max_size=3))
    left = total
    for part in refunded:
        left -= part / 100
    expected = exact - sum(refunded)
    for text in (json.dumps(left), json.dumps(repr(left))):
        value = read_json(text.encode())
        # A string never has an exponent, because PHP and JavaScript print none for amounts of at least a cent.
        if isinstance(value, str) and "e" in value:
            continue
        assert read(value) == expected


@STEADY
@given(st.decimals(min_value="-1e17", max_value="1e17", allow_nan=False, places=9))
def test_only_an_amount_within_a_millionth_of_a_cent_is_rounded(value: Decimal) -> None:
    seen = plain_amount(value)
    assert isinstance(seen, Decimal)
    assert seen == value or (abs(seen - value) <= Decimal("0.000001") and seen == round(seen, 2))
