"""Decides which payouts a person must look at, because the bank refuses them or is late."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, timedelta

from cuota.core.payout.arrival import business_days_after
from cuota.core.payout.payout import PayoutStatus

WAITS_FOR_FILE = "it waits for the next bank file (cuota bank make)"
"""The problem of a payout whose payment is not in a file yet. Until the payout's day, this is normal."""


@dataclass(frozen=True, slots=True)
class PaymentDays:
    """The days of this moment at the bank. A payout that was to arrive before `confirmed` must be confirmed by now."""

    today: date
    confirmed: date


def payment_days(today: date, patience: int) -> PaymentDays:
    """Return the days for a bank that confirms payments within `patience` business days after they arrive."""
    confirmed = today
    while patience and business_days_after(confirmed, patience) >= today:
        confirmed -= timedelta(days=1)
    return PaymentDays(today, confirmed + timedelta(days=1) if patience else today)


def is_unconfirmed(
    status: PayoutStatus, arrival: date, days: PaymentDays, confirm_by: date | None = None
) -> bool:
    """Return whether the bank has accepted the payout and is late with its confirmation.

    `confirm_by` is the last day by the rules of the rail that sent the payout; without it, the rail of the settings counts.
    """
    late = arrival < days.confirmed if confirm_by is None else confirm_by < days.today
    return status is PayoutStatus.SENT and late


def has_problem(problem: str | None, arrival: date, days: PaymentDays) -> bool:
    """Return whether the last call to the bank failed. A payment that waits for a file is a problem only after its day."""
    return problem is not None and (problem != WAITS_FOR_FILE or arrival < days.today)


def problem_note(problem: str | None, tries: int, arrival: date, days: PaymentDays) -> str:
    """Return the text for the operator about the last call to the bank. Empty if the bank answered."""
    if problem is None or has_problem(problem, arrival, days):
        return f"{tries} tries, the last failed: {problem}" if problem else ""
    return problem.removeprefix("it ")
