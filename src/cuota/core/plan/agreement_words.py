"""The words of the agreement, by version.

A version never changes and is never removed: agreements are stored as values, and their text is made again from them with the words that
the consumer accepted. A test has the hash of samples of each version.

To change the words, add a function and its number to `WORDINGS`, and set `NEWEST`. The previous release cannot read the new version, so a
migration moves `installation.agreement_values_from` one day ahead, as 0055_agreement_values.sql did. If `money.shown` or `dates.day` must
change, give the earlier versions a copy of the function as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from cuota.core import money
from cuota.core.dates import day
from cuota.core.plan.agreement_values import AgreementValues, UnreadableAgreement

_CHARGING_1 = (
    "You allow us to charge the card you give for each payment on its date. If a charge fails we tell you, "
    "and you may give another card. You may pay early at any time without cost."
)


def _first(values: AgreementValues) -> tuple[str, ...]:
    """Return the paragraphs of version 1."""
    lender = values.creditor or values.provider
    named = lender if values.provider in lender else f"{lender}, which does business as {values.provider}"
    return (
        f"This agreement is between {values.name} (you) and {named} (we). It pays for your order at {values.merchant}.",
        _payments_1(values),
        _cost_1(values),
        _CHARGING_1,
        _revoking_1(values.page),
        _changes_1(values.merchant, values.authorization_days),
        f"We are the lender. To reach us about this agreement, write to {lender}.",
        "Keep a copy of this agreement. What you accept here does not change afterwards.",
    )


def _payments_1(values: AgreementValues) -> str:
    total = sum(paid.cents for paid in values.payments)
    dates = "; ".join(
        f"{money.shown(paid.cents, values.currency)} on {day(paid.on, year=True)}" for paid in values.payments
    )
    return (
        f"You pay {money.shown(total, values.currency)} in {len(values.payments)} payments: {dates}. "
        "The first is charged when you accept."
    )


def _cost_1(values: AgreementValues) -> str:
    cost, currency = values.cost, values.currency
    if cost is None:
        return "There is no interest, no fee and no late fee."
    return (
        f"The finance charge is {money.shown(cost.finance_charge, currency)}, the annual percentage rate {cost.apr}%, "
        f"the amount financed after today's payment {money.shown(cost.amount_financed, currency)}, and the total of payments "
        f"{money.shown(cost.total_of_payments, currency)}. There is no other cost and no late fee."
    )


def _revoking_1(page: str) -> str:
    """Return the paragraph about ending automatic payments and paying the rest in another way."""
    own_page = f" at {page}" if page else " on your own page"
    return (
        "You may revoke automatic payments at any time, one of them or all. Write to us at least three business days "
        "before a payment, or ask your bank to stop it. You still owe what is left then, and pay it yourself"
        f"{own_page}, where you also see your plan, pay early or change the card."
    )


def _changes_1(merchant: str, days: int) -> str:
    return (
        f"If {merchant} cancels part of your order or refunds you, your last payments become smaller first; what is "
        f"left over goes back to the card that paid. What {merchant} has not claimed within {days} "
        "days is canceled the same way."
    )


NEWEST = 1
WORDINGS: Mapping[int, Callable[[AgreementValues], tuple[str, ...]]] = {1: _first}


def paragraphs_of(values: AgreementValues) -> tuple[str, ...]:
    """Return the paragraphs of the text. Raises UnreadableAgreement if the version of the words is unknown."""
    wording = WORDINGS.get(values.version)
    if wording is None:
        raise UnreadableAgreement(
            f"has the words of version {values.version}, which this release does not have. Start the newest release."
        )
    return wording(values)
