"""The reasons for a declined order, as the consumer reads them: on the page and in a letter.

The letter follows the notice of adverse action under the Equal Credit Opportunity Act (12 CFR 1002.9).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date

from cuota.core.dates import day as shown_day

# The agency that enforces the law for a creditor that is neither a bank nor a credit union (12 CFR part 1002, appendix
# A).
AGENCY = "Federal Trade Commission, Equal Credit Opportunity, Washington, DC 20580"

_TOO_MANY = "We saw very many orders {with_what} in a short time. Waiting a day or more could help."
SENTENCES = {
    "blocked_identity": (
        "We could not confirm who you are, so we take no new orders with your phone number. Write to us to confirm it."
    ),
    "blocked_misuse": (
        "We saw activity with your phone number that we could not explain, so we take no new orders with it. "
        "If it was not you, or to explain it, write to us."
    ),
    "blocked_unpaid": (
        "You owe us money from earlier plans that was not paid as agreed, so we take no new orders. "
        "Paying what is owed, or writing to us, could help."
    ),
    "blocked_own_request": (
        "You asked us to take no new orders with your phone number. Write to us if you want to order again."
    ),
    "overdue_payments": "A payment of an earlier plan is overdue. Once it is paid, you can order again.",
    "over_limit": (
        "With this order you would owe us more than {limit}. "
        "A smaller order, or paying open installments early, could help."
    ),
    "velocity_phone": _TOO_MANY.format(with_what="with your phone number"),
    "velocity_card": _TOO_MANY.format(with_what="with this card"),
    "velocity_address": _TOO_MANY.format(with_what="from your address"),
    "velocity_device": _TOO_MANY.format(with_what="from this device"),
    "disputed_payments": (
        "Earlier payments to us were disputed with a bank. Settling what is open with us could help."
    ),
    "late_payments": (
        "Earlier installments reached us late. Installments that you pay on their day make up for it over time."
    ),
    "recently_declined": (
        "Orders of yours were not approved in the last 30 days. Waiting some weeks before you try again could help."
    ),
    "high_amount": (
        "The order is large, measured by what we can offer you at present. A smaller order could help."
    ),
    "few_payments_yet": (
        "You have not paid many installments with us yet. Each installment that you pay on its day helps."
    ),
    "known_for_short_time": "You have not been with us for long yet. This improves by itself with time.",
    "other_phone": (
        "The phone number that you confirmed is not the one in the order. Giving the shop the same number could help."
    ),
    "other_billing_state": (
        "The state of your billing address is not the one in the order. Giving the same address could help."
    ),
    "other_shipping_state": (
        "The order was to be sent to another state than that of your billing address. "
        "Having it sent to your own state could help."
    ),
    "other_surname": (
        "The last name that you gave is not the one that we know with your phone number. "
        "If your name has changed, write to us."
    ),
    "merchant_information": (
        "What the shop told us about your account there. Ask the shop, or ask us what it was."
    ),
    "sandbox_review_requested": (
        "This is a test: the last name that you gave asks the sandbox to have a person look at the order, and it was not approved."
    ),
    "sandbox_decline_requested": (
        "This is a test: the last name that you gave asks the sandbox not to approve the order."
    ),
}

_EQUAL = (
    "Notice: The federal Equal Credit Opportunity Act prohibits creditors from discriminating against credit "
    "applicants on the basis of race, color, religion, national origin, sex, marital status, or age (provided the "
    "applicant has the capacity to enter into a binding contract); because all or part of the applicant's income "
    "derives from any public assistance program; or because the applicant has in good faith exercised any right under "
    "the Consumer Credit Protection Act. The federal agency that administers compliance with this law concerning this "
    "creditor is: {agency}."
)


def sentence(code: str, limit_text: str = "") -> str:
    """Return what one decline code means, for the consumer.

    `limit_text` is the most that the consumer may owe at once (`$2,000.00`).
    """
    most = "we can offer you at present"
    return SENTENCES[code].format(limit=f"{limit_text}, the most that {most}" if limit_text else most)


def sentences(reasons: Sequence[str], limit_text: str = "") -> list[str]:
    """Return what each reason means, the most important reason first."""
    return [sentence(code, limit_text) for code in reasons]


def letter(
    creditor: str,
    brand: str,
    consumer_name: str,
    merchant: str,
    day: date,
    amount_text: str,
    reasons: Sequence[str],
    *,
    limit_text: str = "",
    agency: str = AGENCY,
) -> list[str]:
    """Return the letter's paragraphs. `creditor` is the lender's name and postal address, on one line.

    `brand` is the name that consumers see, `day` the day of the order, `amount_text` the amount as shown (`$120.00`).
    """
    one = len(reasons) == 1
    asked = (
        f"Thank you for choosing {brand}. On {shown_day(day, year=True)} you asked us to pay for your order of "
        f"{amount_text} at {merchant} in installments. We could not approve it. Nothing was charged."
    )
    rights = (
        "You may write to us within 60 days of this letter: we explain our decision and these reasons to you, free of "
        "charge. If you believe that something we know of you is wrong, say so, and we look at it again. "
        f"Our address: {creditor}."
    )
    return [
        f"Dear {consumer_name},",
        asked,
        "The principal reason was:" if one else "The principal reasons were, the weightiest first:",
        *(f"{number}. {text}" for number, text in enumerate(sentences(reasons, limit_text), 1)),
        *_sources(reasons),
        rights,
        _EQUAL.format(agency=agency),
        brand,
    ]


def _sources(reasons: Sequence[str]) -> list[str]:
    """Say where the data came from. The law gives the consumer an additional right if the data came from somebody else."""
    own = "We used no consumer report from a credit bureau and no credit score of one."
    shop = (
        "In part we went by what the shop told us about your account there. You have the right to know what that was: "
        "ask us in writing within 60 days of this letter."
    )
    return [own, shop] if "merchant_information" in reasons else [own]
