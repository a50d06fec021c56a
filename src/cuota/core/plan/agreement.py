"""The payment agreement: the text that the consumer accepts, its hash, and the two forms in which it is stored.

The short form has the values of the text as a JSON array, which begins with a bracket. The long form is the text, which begins with a
word; earlier releases stored it. Both forms are read forever.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from cuota.core.consumer import Profile
from cuota.core.installment import Installment
from cuota.core.plan.agreement_values import AgreedPayment, AgreementValues, cost_of, read_values
from cuota.core.plan.agreement_words import NEWEST, paragraphs_of


@dataclass(frozen=True, slots=True)
class Agreement:
    """Paragraphs of plain text. The consent contains the SHA-256 hash of the text, which proves what was accepted.

    `values` is the short form.
    """

    values: str
    paragraphs: tuple[str, ...]

    @property
    def text(self) -> str:
        """The whole text, which is also the long form."""
        return "\n\n".join(self.paragraphs)

    @property
    def hash(self) -> str:
        """The hexadecimal SHA-256 of the text."""
        return hashlib.sha256(self.text.encode()).hexdigest()


def agreement(
    provider: str,
    merchant: str,
    who: Profile,
    plan: Sequence[Installment],
    currency: str,
    authorization_days: int,
    creditor: str = "",
    page: str = "",
) -> Agreement:
    """Write the agreement for one plan.

    `creditor` is the lender's name and postal address, `page` the address of the account page.
    """
    payments = tuple(AgreedPayment(item.total, item.due_on) for item in plan)
    values = AgreementValues(
        NEWEST, who.name, merchant, provider, creditor, page, authorization_days, currency, payments, cost_of(plan)
    )  # fmt: skip
    return _written(values.stored)


def accepted_text(stored: str) -> str:
    """Return the text that the consumer accepted, from either form. Raises UnreadableAgreement.

    The text of an erased agreement is empty.
    """
    return _written(stored).text if stored.startswith("[") else stored


def _written(stored: str) -> Agreement:
    # The shown text is made from the stored values, like every later text, so the values always have the accepted hash.
    return Agreement(stored, paragraphs_of(read_values(stored)))
