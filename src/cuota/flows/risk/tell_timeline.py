"""Describes what happened to an order, by time: events, decisions, the review, charges, and changes of the plan."""

from __future__ import annotations

from collections.abc import Sequence

from cuota.core import money
from cuota.core.instant import timestamp
from cuota.core.plan.change import PlanChange
from cuota.core.plan.charge import NEVER_SENT
from cuota.db.order.story import Charged, Story, StoryEvent
from cuota.db.risk.decisions import Made
from cuota.db.risk.reviews import ReviewedOrder
from cuota.flows.risk.tell_review import review_steps

_MOVEMENTS = frozenset({"capture", "void", "refund"})
# The order of lines with the same time: a cause stands before its result.
_CREATED, _DECIDED, _CHARGED, _LATER = range(4)


def timeline(
    found: Story, made: Sequence[Made], review: ReviewedOrder | None, changes: Sequence[PlanChange]
) -> list[str]:
    """Return one line for each thing that happened, the earliest first."""
    currency = found.order.currency
    steps = review_steps(review) if review is not None else []
    lines = [
        *(
            (timestamp(each.at), _CREATED if each.type == "order.created" else _LATER, _event(each, currency))
            for each in found.told
        ),
        *((timestamp(each.decided_at), _DECIDED, f"decided: {each.outcome}") for each in made),
        *((timestamp(at), _DECIDED, text) for at, text in steps),
        *((timestamp(each.at), _CHARGED, _charge(each, currency)) for each in found.charged),
        *((timestamp(each.changed_at), _LATER, _change(each)) for each in changes),
    ]
    return [f"  {at}  {text}" for at, _, text in sorted(lines, key=lambda line: line[:2])]


def _event(each: StoryEvent, currency: str) -> str:
    text = each.type
    if each.type.partition(".")[0] in _MOVEMENTS:
        reference = f" (reference {each.reference})" if each.reference else ""
        text = f"{text} of {money.shown(each.amount, currency)}{reference}"
    return f"{text}: {each.message}" if each.message else text


def _change(each: PlanChange) -> str:
    return f"change {each.number} of the plan ({each.kind.replace('_', ' ')}), by {each.changed_by}"


def _charge(each: Charged, currency: str) -> str:
    results = {
        "succeeded": "paid",
        "failed": "never sent" if each.reason == NEVER_SENT else f"declined ({each.reason})",
        "pending": "charge sent, no answer yet",
    }
    amount = money.shown(each.amount, currency)
    return f"{each.brand} {each.last4} for installment {each.installment}, {amount}: {results[each.state]}"
