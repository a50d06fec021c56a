"""core/installment: the schedule, and how a void or refund reduces it."""

from __future__ import annotations

from dataclasses import replace
from datetime import date, timedelta

import pytest

from cuota.core.installment import cut, schedule, total
from support.core.values import TODAY, charge_id, plan


def test_four_installments_are_due_fourteen_days_apart_from_the_first_day() -> None:
    days = [item.due_on for item in schedule(10_000, 0, TODAY)]
    assert days == [TODAY + timedelta(days=n) for n in (0, 14, 28, 42)]


def test_the_days_are_calendar_days_over_a_leap_february() -> None:
    days = [item.due_on for item in schedule(10_000, 0, date(2028, 2, 20))]
    assert days == [date(2028, 2, 20), date(2028, 3, 5), date(2028, 3, 19), date(2028, 4, 2)]


def test_amount_and_fee_are_each_split_with_the_first_cents_first() -> None:
    parts = [(item.amount, item.fee, item.total) for item in schedule(10_002, 101, TODAY)]
    assert parts == [(2501, 26, 2527), (2501, 25, 2526), (2500, 25, 2525), (2500, 25, 2525)]


def test_installments_are_numbered_from_one_and_unpaid_at_first() -> None:
    agreed = schedule(10_000, 0, TODAY)
    assert [item.number for item in agreed] == [1, 2, 3, 4]
    assert not any(item.paid for item in agreed)


def test_an_installment_is_scheduled_then_paid_or_cancelled() -> None:
    item = schedule(10_000, 40, TODAY)[3]
    assert item.state == "scheduled"
    assert replace(item, charge_id=charge_id(4)).state == "paid"
    assert replace(item, amount=0).state == "scheduled", "its part of the fee is still owed"
    assert replace(item, amount=0, fee=0).state == "cancelled"


def test_a_paid_installment_is_still_paid_after_its_whole_amount_went_back() -> None:
    assert replace(plan()[0], amount=0, returned=2500).state == "paid"


@pytest.mark.parametrize(
    ("amount", "left"),
    [
        (1, [2500, 2500, 2500, 2499]),
        (2500, [2500, 2500, 2500, 0]),
        (2501, [2500, 2500, 2499, 0]),
        (7499, [2500, 1, 0, 0]),
        (7500, [2500, 0, 0, 0]),
    ],
)
def test_unpaid_installments_are_cut_from_the_last_backwards(amount: int, left: list[int]) -> None:
    done = cut(plan(), amount, 0)
    assert [item.amount for item in done.plan] == left
    assert (done.unpaid, done.to_card, done.by_charge) == (amount, 0, {})


def test_after_the_unpaid_installments_the_latest_paid_one_is_reduced_first() -> None:
    done = cut(plan(paid=(1, 2)), 8000, 0)
    assert [item.amount for item in done.plan] == [2000, 0, 0, 0]
    assert [item.returned for item in done.plan] == [500, 2500, 0, 0]
    assert (done.unpaid, done.to_card) == (5000, 3000)
    assert done.by_charge == {charge_id(2): 2500, charge_id(1): 500}


def test_unpaid_installments_are_cut_first_even_if_a_later_one_is_paid() -> None:
    done = cut(plan(paid=(1, 4)), 6000, 0)
    assert [item.amount for item in done.plan] == [2500, 0, 0, 1500]
    assert done.by_charge == {charge_id(4): 1000}


def test_two_installments_that_one_charge_paid_go_back_to_the_card_as_one_sum() -> None:
    both = [replace(item, charge_id=charge_id(9)) if item.paid else item for item in plan(paid=(1, 2))]
    assert cut(both, 10_000, 0).by_charge == {charge_id(9): 5000}


def test_the_fee_is_cut_in_the_same_order_as_the_amount() -> None:
    done = cut(plan(10_000, 400), 8000, 320)
    assert [(item.amount, item.fee) for item in done.plan] == [(2000, 80), (0, 0), (0, 0), (0, 0)]
    assert (done.fee_unpaid, done.fee_to_card) == (300, 20)
    assert done.by_charge == {charge_id(1): 520}
    assert done.plan[0].returned == 520


def test_the_returned_amounts_of_several_cuts_add_up() -> None:
    once = cut(plan(), 8000, 0)
    twice = cut(once.plan, 1000, 0)
    assert twice.plan[0].returned == 1500
    assert twice.by_charge == {charge_id(1): 1000}


def test_a_cut_of_zero_changes_nothing() -> None:
    before = plan(paid=(1, 2))
    assert list(cut(before, 0, 0).plan) == before


def test_more_than_the_plan_holds_cannot_be_cut() -> None:
    with pytest.raises(AssertionError):
        cut(plan(), 10_001, 0)
    with pytest.raises(AssertionError):
        cut(plan(10_000, 4), 10_000, 5)


def test_the_total_of_a_plan_does_not_contain_fees() -> None:
    assert total(plan(10_001, 400)) == 10_001
