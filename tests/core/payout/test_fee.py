"""core/payout/terms and fee: what a capture costs the merchant, and what refunds return."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cuota.core.payout.fee import CaptureFee, OrderFees, capture_fee, fee_to_return, returnable_fee
from cuota.core.payout.terms import RefundFee, SettlementTerms, in_force
from support.properties.steady import steady

NOW = datetime(2026, 11, 23, 12, tzinfo=UTC)
DAY = timedelta(days=1)


def terms(percent: int = 590, fixed: int = 30, refund_fee: RefundFee = RefundFee.KEPT) -> SettlementTerms:
    return SettlementTerms(1, NOW - DAY, percent, fixed, refund_fee)


@pytest.mark.parametrize(
    ("amount", "percent", "fixed", "fee"),
    [
        (10_000, 590, 30, 620),
        (1, 590, 30, 30),
        (100, 50, 0, 1),
        (99, 50, 0, 0),
        (300, 50, 0, 2),
        (10**13, 590, 0, 59 * 10**10),
    ],
)
def test_a_fee_is_the_percentage_rounded_half_up_and_the_fixed_part(
    amount: int, percent: int, fixed: int, fee: int
) -> None:
    assert terms(percent, fixed).fee(amount) == fee


@steady(500)
@given(amount=st.integers(1, 10**13), percent=st.integers(0, 10_000))
def test_fees_are_rounded_like_exact_decimals(amount: int, percent: int) -> None:
    exact = Decimal(amount) * percent / 10_000
    assert terms(percent, 0).fee(amount) == int(exact.quantize(Decimal(1), ROUND_HALF_UP))


def test_without_terms_a_capture_costs_nothing() -> None:
    assert capture_fee([], 10_000, NOW) == 0
    assert capture_fee([SettlementTerms(1, NOW + DAY, 590, 30)], 10_000, NOW) == 0


def test_the_version_of_the_terms_that_is_valid_at_the_capture_decides_the_fee() -> None:
    versions = [
        SettlementTerms(1, NOW - DAY, 100),
        SettlementTerms(2, NOW, 200),
        SettlementTerms(3, NOW + DAY, 300),
    ]
    assert [capture_fee(versions, 10_000, NOW + shift) for shift in (-2 * DAY, -DAY, timedelta(0), DAY)] == [
        0, 100, 200, 300,
    ]  # fmt: skip
    same_time = [SettlementTerms(1, NOW, 100), SettlementTerms(2, NOW, 200)]
    found = in_force(same_time, NOW)
    assert found is not None
    assert found.version == 2


@pytest.mark.parametrize(("policy", "back"), [("kept", 0), ("pro_rata", 590), ("returned", 620)])
def test_a_full_refund_returns_the_fee_as_the_merchant_s_terms_say(policy: str, back: int) -> None:
    valid = terms(refund_fee=RefundFee(policy))
    paid = OrderFees((CaptureFee(NOW, 10_000, valid.fee(10_000)),))
    assert fee_to_return([valid], paid, 10_000) == back


def test_the_terms_at_the_capture_also_decide_about_its_refund() -> None:
    versions = [
        SettlementTerms(1, NOW - DAY, 590, 30, RefundFee.RETURNED),
        SettlementTerms(2, NOW, 590, 30, RefundFee.KEPT),
    ]
    early, late = CaptureFee(NOW - DAY, 10_000, 620), CaptureFee(NOW, 10_000, 620)
    assert [returnable_fee(versions, each) for each in (early, late)] == [620, 0]


def test_a_refund_of_a_capture_without_a_fee_returns_no_fee() -> None:
    assert returnable_fee([terms(refund_fee=RefundFee.RETURNED)], CaptureFee(NOW, 10_000, 0)) == 0


PARTS = st.lists(st.integers(1, 5_000), min_size=1, max_size=12)


@steady(500)
@given(
    parts=PARTS, percent=st.integers(0, 10_000), fixed=st.integers(0, 500), policy=st.sampled_from(RefundFee)
)
def test_many_small_refunds_return_exactly_as_much_fee_as_one_large_refund(
    parts: list[int], percent: int, fixed: int, policy: RefundFee
) -> None:
    valid = terms(percent, fixed, policy)
    amount = sum(parts) + 17
    fees = OrderFees((CaptureFee(NOW, amount, valid.fee(amount)),))
    refunded, returned = 0, 0
    for part in parts:
        refunded += part
        returned += fee_to_return([valid], OrderFees(fees.captures, returned), refunded)
        assert 0 <= returned <= valid.returnable(amount) <= valid.fee(amount)
    assert returned == fee_to_return([valid], fees, refunded)


@steady(500)
@given(
    steps=st.lists(st.tuples(st.booleans(), st.integers(1, 3_000)), min_size=1, max_size=20),
    percent=st.integers(0, 10_000),
    policy=st.sampled_from(RefundFee),
)
def test_refunds_never_return_more_fee_than_captures_paid_in_any_order(
    steps: list[tuple[bool, int]], percent: int, policy: RefundFee
) -> None:
    valid = terms(percent, 30, policy)
    fees, captured, refunded = OrderFees(), 0, 0
    for is_capture, amount in steps:
        if is_capture:
            captured += amount
            fees = OrderFees((*fees.captures, CaptureFee(NOW, amount, valid.fee(amount))), fees.returned)
        elif refunded + amount <= captured:
            refunded += amount
            back = fee_to_return([valid], fees, refunded)
            assert back >= 0
            fees = OrderFees(fees.captures, fees.returned + back)
        assert fees.returned <= sum(each.fee for each in fees.captures)
    if captured and refunded < captured:
        back = fee_to_return([valid], fees, captured)
        returnable = sum(valid.returnable(each.amount) for each in fees.captures)
        assert fees.returned + back == max(returnable, fees.returned)
