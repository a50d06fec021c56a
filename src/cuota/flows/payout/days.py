"""The days by which this installation judges its payouts."""

from __future__ import annotations

from cuota.core.payout.arrival import day_at_bank
from cuota.core.payout.late import PaymentDays, payment_days
from cuota.flows.context import Context


def days_now(context: Context) -> PaymentDays:
    """Return today at the bank, and the day before which the bank rail must confirm payouts whose own rail is not known."""
    rail = context.rails.bank
    return payment_days(day_at_bank(context.now()), 0 if rail is None else rail.patience)
