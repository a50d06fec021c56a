"""A bank's report about payments: paid, or returned with the bank's reason."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from cuota.core import money


class BadReport(ValueError):
    """The file is not a bank's report of this format, or is damaged. The text says what is wrong and where."""


@dataclass(frozen=True, slots=True)
class Reported:
    """One payment in a report. The amount is in cents.

    The payment is identified by `payout_id` (ISO 20022), by `trace` (NACHA), or, if the bank posted a whole file at once, by
    `file_number`. `reason` is the code of a return (R03, AC01, ...), or None for a payment that the bank made. `unclear`: the
    entry is about this payment, and a person must find out what it means; nothing is recorded.
    """

    amount: int
    reason: str | None = None
    payout_id: UUID | None = None
    trace: str | None = None
    file_number: int | None = None
    currency: str = money.CURRENCY
    unclear: bool = False


@dataclass(frozen=True, slots=True)
class ChangeNotice:
    """A notification of change: the bank accepted the payment, and asks the sender to use corrected details from then on."""

    trace: str
    code: str
    corrected: str
