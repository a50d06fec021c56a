"""The values from which an agreement's text is made. Cuota stores them instead of the text: they are a fifth of its size."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date

from cuota.core.installment import Installment
from cuota.core.plan.finance import terms


class UnreadableAgreement(ValueError):
    """The stored values were not written by this release or an earlier one. The message says why."""


@dataclass(frozen=True, slots=True)
class AgreedPayment:
    """What the consumer pays on a day: the part of the order and the part of the fee, in cents."""

    cents: int
    on: date


@dataclass(frozen=True, slots=True)
class DisclosedCost:
    """The disclosed figures of a plan with a fee: amounts in cents, and the annual percentage rate as it is printed.

    They are stored and not computed again, so that a change of the computation never changes an accepted text.
    """

    finance_charge: int
    apr: str
    amount_financed: int
    total_of_payments: int


@dataclass(frozen=True, slots=True)
class AgreementValues:
    """What an agreement says, without its words. `version` is the version of the words (core/plan/agreement_words.py).

    Each value is in the text, so that the hash of the text protects each of them: `cost` is None if the plan has no fee.
    """

    version: int
    name: str
    merchant: str
    provider: str
    creditor: str
    page: str
    authorization_days: int
    currency: str
    payments: tuple[AgreedPayment, ...]
    cost: DisclosedCost | None

    @property
    def stored(self) -> str:
        """The values as a JSON array. The same values always have the same text."""
        payments = [[paid.cents, paid.on.isoformat()] for paid in self.payments]
        cost = (
            None
            if self.cost is None
            else [
                self.cost.finance_charge,
                self.cost.apr,
                self.cost.amount_financed,
                self.cost.total_of_payments,
            ]
        )
        row = [
            self.version, self.name, self.merchant, self.provider, self.creditor, self.page, self.authorization_days,
            self.currency, payments, cost,
        ]  # fmt: skip
        return json.dumps(row, ensure_ascii=False, separators=(",", ":"))


def cost_of(plan: Sequence[Installment]) -> DisclosedCost | None:
    """Return the figures that the agreement discloses, or None for a plan without a fee."""
    box = terms(plan)
    if not box.finance_charge:
        return None
    return DisclosedCost(box.finance_charge, str(box.apr), box.amount_financed, box.total_of_payments)


def read_values(stored: str) -> AgreementValues:
    """Read the JSON array. Raises UnreadableAgreement for every text that `stored` would not write."""
    try:
        version, name, merchant, provider, creditor, page, days, currency, payments, cost = json.loads(stored)
        agreed = tuple(AgreedPayment(cents, date.fromisoformat(on)) for cents, on in payments)
        values = AgreementValues(
            version, name, merchant, provider, creditor, page, days, currency, agreed,
            None if cost is None else DisclosedCost(*cost),
        )  # fmt: skip
        written = values.stored
    # Python raises RecursionError for arrays that are nested too deeply.
    except (ValueError, TypeError, RecursionError) as problem:
        raise UnreadableAgreement(f"is not the values of an agreement: {problem}") from None
    if written != stored or not _well_typed(values):
        raise UnreadableAgreement("is not the values of an agreement as Cuota writes them")
    return values


def _well_typed(values: AgreementValues) -> bool:
    texts: list[object] = [
        values.name,
        values.merchant,
        values.provider,
        values.creditor,
        values.page,
        values.currency,
    ]
    whole: list[object] = [
        values.version,
        values.authorization_days,
        *(paid.cents for paid in values.payments),
    ]
    if (cost := values.cost) is not None:
        texts.append(cost.apr)
        whole += [cost.finance_charge, cost.amount_financed, cost.total_of_payments]
    # `type` and not `isinstance`, because True is an int.
    return all(type(text) is str for text in texts) and all(type(number) is int for number in whole)
