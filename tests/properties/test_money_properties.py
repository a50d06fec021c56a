"""Properties of every amount: splitting, sharing, reading and printing."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuota.core import money
from cuota.core.wire.strict_json import read_json
from cuota.db.order.documents import encode
from support.properties.steady import STEADY

CENTS = st.integers(0, 10**18 - 1)


@STEADY
@given(CENTS, st.integers(1, 60))
def test_a_split_adds_up_and_its_parts_differ_by_a_cent_at_most(total: int, parts: int) -> None:
    split = money.split(total, parts)
    assert (len(split), sum(split)) == (parts, total)
    assert max(split) - min(split) <= 1
    assert split == sorted(split, reverse=True)


@STEADY
@given(CENTS, st.data())
def test_a_share_differs_from_the_exact_part_by_half_a_cent_at_most(whole: int, data: st.DataObject) -> None:
    total = data.draw(st.integers(1, 10**18))
    part = data.draw(st.integers(0, total))
    shared = money.share(whole, part, total)
    assert abs(shared - Fraction(whole * part, total)) <= Fraction(1, 2)
    assert 0 <= shared <= whole
    assert money.share(whole, 0, total) == 0
    assert money.share(whole, total, total) == whole


@STEADY
@given(st.integers(0, 10**6), st.integers(1, 10**6), st.data())
def test_a_share_never_falls_when_its_part_grows(whole: int, total: int, data: st.DataObject) -> None:
    parts = sorted(data.draw(st.lists(st.integers(0, total), min_size=2, max_size=10)))
    shares = [money.share(whole, part, total) for part in parts]
    assert shares == sorted(shares)


@STEADY
@given(st.integers(-(10**18) + 1, 10**18 - 1))
def test_cents_written_as_text_decimal_or_json_are_read_back_unchanged(cents: int) -> None:
    assert money.cents_of(money.decimal_from(cents)) == cents
    assert money.cents_of(money.text_of(cents)) == cents
    printed = money.text_of(cents)
    assert money.cents_of(read_json(printed.encode())) == cents


@STEADY
@given(st.integers(-(10**18) + 1, 10**18 - 1))
def test_an_answer_prints_cents_that_a_strict_reader_reads_back(cents: int) -> None:
    body = encode({"amount": money.decimal_from(cents)})
    assert money.cents_of(read_json(body)["amount"]) == cents


@STEADY
@given(st.decimals(allow_nan=False, allow_infinity=False))
def test_an_amount_is_read_exactly_or_refused(number: Decimal) -> None:
    try:
        cents = money.cents_of(number)
    except money.BadAmount:
        written = number.as_tuple()
        meant = "".join(map(str, written.digits)).strip("0")
        exact = Fraction(number) * 100
        assert exact.denominator != 1 or len(meant) > 18 or abs(exact) >= 10**20
    else:
        assert Fraction(cents, 100) == Fraction(number)


@STEADY
@given(st.text(max_size=80) | st.from_regex(r"[-+]?[0-9.,_eE ]{1,70}", fullmatch=True))
def test_any_text_is_read_as_an_amount_or_refused_without_another_exception(text: str) -> None:
    try:
        cents = money.cents_of(text)
    except money.BadAmount:
        return
    assert Fraction(cents, 100) == Fraction(Decimal(text))


@STEADY
@given(
    st.binary(max_size=200)
    | st.text(alphabet='{}[]",:0123456789.eE+-ntruefals\\u ', max_size=200).map(str.encode)
)
def test_any_bytes_are_read_as_json_or_refused_without_another_exception(body: bytes) -> None:
    from cuota.core.wire.strict_json import BadJson

    try:
        read_json(body)
    except BadJson:
        return


@pytest.mark.parametrize("total", range(9))
def test_small_totals_are_split_like_cents_dealt_one_by_one(total: int) -> None:
    by_hand = [0, 0, 0, 0]
    for cent in range(total):
        by_hand[cent % 4] += 1
    assert money.split(total, 4) == by_hand
