"""The body of an event about a payout or a bank account. It has the same bytes every time."""

from __future__ import annotations

from cuota.core.instant import timestamp
from cuota.core.money import decimal_from
from cuota.db.webhook.happened import Happened
from cuota.db.webhook.payout_events import BankAccountFacts, PayoutFacts

CANCELED = "canceled"
"""The message of the event that says that a change of the bank account was canceled or replaced."""


def payout_members(facts: PayoutFacts, happened: Happened) -> dict[str, object]:
    """Return the members of a payout's event after the common ones. The status is the one that the event reports."""
    is_created = happened.type == "payout.created"
    arrival = facts.arrival_date if is_created else facts.sent_arrival or facts.arrival_date
    payout: dict[str, object] = {
        "payoutId": facts.payout_id,
        "number": facts.number,
        "status": happened.type.removeprefix("payout."),
        "amount": decimal_from(facts.amount),
        "currency": facts.currency,
        "closedAt": timestamp(facts.closed_at),
        "arrivalDate": arrival.isoformat(),
        "lineCount": facts.line_count,
        "bankAccount": {"last4": facts.last4},
    }
    if happened.type == "payout.returned":
        return {"payout": payout, "reason": happened.message}
    return {"payout": payout}


def account_members(facts: BankAccountFacts, happened: Happened) -> dict[str, object]:
    """Return the members of a bank account's event after the common ones."""
    account = {
        "accountId": facts.account_id,
        "last4": facts.last4,
        "effectiveAt": timestamp(facts.effective_at),
        "canceled": happened.message == CANCELED,
    }
    return {"bankAccount": account}
