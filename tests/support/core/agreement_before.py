"""The agreement's text as the last release made it that stored only texts. A property compares the two."""

from __future__ import annotations

from collections.abc import Sequence

from cuota.core import money
from cuota.core.consumer import Profile
from cuota.core.dates import day
from cuota.core.installment import Installment
from cuota.core.plan.finance import terms

_CHARGING = (
    "You allow us to charge the card you give for each payment on its date. If a charge fails we tell you, "
    "and you may give another card. You may pay early at any time without cost."
)


def _revoking(page: str) -> str:
    """Return the paragraph about ending automatic payments and paying the rest in another way."""
    own_page = f" at {page}" if page else " on your own page"
    return (
        "You may revoke automatic payments at any time, one of them or all. Write to us at least three business days "
        "before a payment, or ask your bank to stop it. You still owe what is left then, and pay it yourself"
        f"{own_page}, where you also see your plan, pay early or change the card."
    )


def text_before(
    provider: str,
    merchant: str,
    who: Profile,
    plan: Sequence[Installment],
    currency: str,
    authorization_days: int,
    creditor: str = "",
    page: str = "",
) -> str:
    """Return the text of the agreement."""
    lender = creditor or provider
    named = lender if provider in lender else f"{lender}, which does business as {provider}"
    total = sum(item.total for item in plan)
    dates = "; ".join(
        f"{money.shown(item.total, currency)} on {day(item.due_on, year=True)}" for item in plan
    )
    payments = (
        f"You pay {money.shown(total, currency)} in {len(plan)} payments: {dates}. "
        "The first is charged when you accept."
    )
    box = terms(plan)
    cost = (
        f"The finance charge is {money.shown(box.finance_charge, currency)}, the annual percentage rate {box.apr}%, "
        f"the amount financed after today's payment {money.shown(box.amount_financed, currency)}, and the total of payments "
        f"{money.shown(box.total_of_payments, currency)}. There is no other cost and no late fee."
        if box.finance_charge
        else "There is no interest, no fee and no late fee."
    )
    changes = (
        f"If {merchant} cancels part of your order or refunds you, your last payments become smaller first; what is "
        f"left over goes back to the card that paid. What {merchant} has not claimed within {authorization_days} "
        "days is canceled the same way."
    )
    return "\n\n".join(
        (
            f"This agreement is between {who.name} (you) and {named} (we). It pays for your order at {merchant}.",
            payments,
            cost,
            _CHARGING,
            _revoking(page),
            changes,
            f"We are the lender. To reach us about this agreement, write to {lender}.",
            "Keep a copy of this agreement. What you accept here does not change afterwards.",
        )
    )
