"""The Truth in Lending disclosures of a plan with a fee (Regulation Z, appendix J, actuarial method)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_HALF_UP, Decimal

from cuota.core.installment import Installment, total

# The unit period is the 14 days between payments. Appendix J counts 26 such periods in a year.
UNIT_PERIODS_A_YEAR = 26
_PRECISION = Decimal("0.0000000001")


@dataclass(frozen=True, slots=True)
class CreditTerms:
    """The disclosure box: amounts in cents, and the annual percentage rate in percent with two decimals.

    Today's payment is a down payment, and its part of the fee is a prepaid finance charge. Neither is financed. So
    `amount_financed + finance_charge = total_of_payments`, where the payments are those after today.
    """

    finance_charge: int
    amount_financed: int
    total_of_payments: int
    apr: Decimal


def terms(plan: Sequence[Installment]) -> CreditTerms:
    """Compute the disclosure box of a plan."""
    fee = sum(item.fee for item in plan)
    principal = total(plan)
    later = [Decimal(item.total) for item in plan[1:]]
    financed = principal - plan[0].total
    rate = _rate(Decimal(financed), later) if fee and financed > 0 else Decimal(0)
    percent = (rate * UNIT_PERIODS_A_YEAR * 100).quantize(Decimal("0.01"), ROUND_HALF_UP)
    return CreditTerms(fee, financed, financed + fee, percent)


def _rate(financed: Decimal, payments: Sequence[Decimal]) -> Decimal:
    """Return the rate for a unit period at which the present value of the payments is the amount financed, by bisection."""
    low, high = Decimal(0), Decimal(1)
    while _worth(payments, high) > financed:
        high *= 2
    while high - low > _PRECISION:
        middle = (low + high) / 2
        low, high = (middle, high) if _worth(payments, middle) > financed else (low, middle)
    return high


def _worth(payments: Sequence[Decimal], rate: Decimal) -> Decimal:
    return sum((amount / (1 + rate) ** (index + 1) for index, amount in enumerate(payments)), Decimal(0))
