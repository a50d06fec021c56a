"""core/plan/finance: the Truth in Lending box, compared with a rate that is computed in another way."""

from __future__ import annotations

from decimal import ROUND_HALF_UP, Decimal, localcontext
from fractions import Fraction

import pytest

from cuota.core.installment import schedule
from cuota.core.plan.finance import terms
from support.core.values import TODAY

CASES = [
    (10_000, 400),
    (10_000, 1),
    (200_000, 9999),
    (10_003, 777),
    (100, 3),
    (50_040, 2502),
    (10_000, 10_000),
]


def _newton(financed: int, payments: list[int]) -> Decimal:
    """Return the APR in percent, by Newton's method in exact fractions. With x = 1 / (1 + rate), the present value is a
    cubic in x."""
    x = Fraction(1)
    for _ in range(60):
        worth = sum((p * x**n for n, p in enumerate(payments, 1)), Fraction(-financed))
        slope = sum((n * p * x ** (n - 1) for n, p in enumerate(payments, 1)), Fraction(0))
        # Round to 60 binary digits in each step, because the fractions would grow without end.
        step = Fraction(round((x - worth / slope) * 2**60), 2**60)
        if step == x:
            break
        x = step
    percent = (1 / x - 1) * 26 * 100
    with localcontext(prec=50):
        return (Decimal(percent.numerator) / Decimal(percent.denominator)).quantize(
            Decimal("0.01"), ROUND_HALF_UP
        )


@pytest.mark.parametrize(("amount", "fee"), CASES)
def test_the_apr_equals_one_computed_by_newton_s_method(amount: int, fee: int) -> None:
    plan = schedule(amount, fee, TODAY)
    expected = _newton(amount - plan[0].total, [item.total for item in plan[1:]])
    assert terms(plan).apr == expected


def test_the_apr_of_a_known_example_is_right() -> None:
    # 74.00 are financed, with three payments of 26.00: 2.6792 % for each period of 14 days, and a year has 26 of them.
    assert terms(schedule(10_000, 400, TODAY)).apr == _newton(7400, [2600, 2600, 2600]) == Decimal("69.66")


@pytest.mark.parametrize(("amount", "fee"), CASES)
def test_the_amount_financed_plus_the_finance_charge_equals_the_payments_after_today(
    amount: int, fee: int
) -> None:
    plan = schedule(amount, fee, TODAY)
    box = terms(plan)
    assert box.finance_charge == fee
    assert box.amount_financed + box.finance_charge == box.total_of_payments
    assert box.total_of_payments == sum(item.total for item in plan[1:])


def test_a_plan_without_a_fee_costs_nothing() -> None:
    box = terms(schedule(10_000, 0, TODAY))
    assert (box.finance_charge, box.amount_financed, box.total_of_payments) == (0, 7500, 7500)
    assert box.apr == 0


def test_a_plan_with_a_higher_fee_has_a_higher_apr() -> None:
    rates = [terms(schedule(10_000, fee, TODAY)).apr for fee in (1, 100, 400, 1000, 5000, 10_000)]
    assert rates == sorted(set(rates))
