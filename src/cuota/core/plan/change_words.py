"""The words for a change of a plan: a one-sentence summary, and the text that is stored with its hash."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date

from cuota.core import money
from cuota.core.dates import day
from cuota.core.installment import Installment
from cuota.core.plan.change import ChangeKind, PlannedPayment
from cuota.core.plan.hardship import changeable


@dataclass(frozen=True, slots=True)
class ChangedOrder:
    """The order whose plan changes. `agreed_on` and `agreement_hash` are those of the agreement that the consumer accepted."""

    merchant: str
    reference: str
    currency: str
    agreed_on: date
    agreement_hash: str


def summary(kind: ChangeKind, days: int, waived: int, left: Sequence[PlannedPayment], currency: str) -> str:
    """Return one sentence for the consumer. `left` are the payments that are left after the change."""
    if kind is ChangeKind.PAUSED:
        until = f" The next payment is on {day(left[0].due_on)}." if left else ""
        return f"Your payments pause for {_counted(days, 'day')}.{until}"
    if kind is ChangeKind.DATES_MOVED:
        return "You have more time: payments move to later days."
    if kind is ChangeKind.SMALLER_PAYMENTS:
        return f"What is left is divided into {len(left)} smaller payments."
    return f"You need not pay {money.shown(waived, currency)} of the fee for this plan."


def change_text(
    about: ChangedOrder,
    on: date,
    said: str,
    before: Sequence[PlannedPayment],
    after: Sequence[PlannedPayment],
) -> str:
    """Return the text of a change: `said` is its summary, `before` and `after` are the payments that are left, `on` its day."""
    total, total_before = sum(each.total for each in after), sum(each.total for each in before)
    owed = f"You owe {money.shown(total, about.currency)}"
    owed += (
        ", as before."
        if total == total_before
        else f", which was {money.shown(total_before, about.currency)}."
    )
    order = f"order {about.reference}" if about.reference else "your order"
    stays = (
        f"The agreement that you accepted on {day(about.agreed_on, year=True)} (SHA-256 {about.agreement_hash}) stays in force in"
        " everything else."
    )
    return "\n\n".join(
        (
            f"Change of the payment plan for {order} at {about.merchant}, agreed on {day(on, year=True)}",
            said,
            "Payments that were left before this change:\n" + _listed(before, about.currency),
            "Payments from now on:\n" + _listed(after, about.currency),
            f"{owed} This change costs nothing: no interest and no fee is added. You can still pay early at any time.",
            stays,
        )
    )


def effect_rows(
    before: Sequence[Installment], after: Sequence[Installment], currency: str
) -> list[tuple[str, str, str]]:
    """Return the payments that are left, as (label, now, after), and their totals."""
    now = {item.number: item for item in changeable(before)}
    then = {item.number: item for item in changeable(after)}
    rows = [
        (f"Payment {number}", _payment(now.get(number), currency), _payment(then.get(number), currency))
        for number in sorted({*now, *then})
    ]
    return [*rows, ("Left to pay", _sum(now.values(), currency), _sum(then.values(), currency))]


def _payment(item: Installment | None, currency: str) -> str:
    if item is None:
        return "none"
    late = ", overdue" if item.failures else ""
    return f"{money.shown(item.total, currency)} on {day(item.due_on, year=True)}{late}"


def _sum(items: Iterable[Installment], currency: str) -> str:
    return money.shown(sum(item.total for item in items), currency)


def hash_of(text: str) -> str:
    """Return the SHA-256 of a text, in hexadecimal."""
    return hashlib.sha256(text.encode()).hexdigest()


def _listed(payments: Sequence[PlannedPayment], currency: str) -> str:
    return "\n".join(
        f"{each.number}. {money.shown(each.total, currency)} on {day(each.due_on, year=True)}"
        for each in payments
    )


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
