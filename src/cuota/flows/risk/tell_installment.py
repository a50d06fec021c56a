"""Describes one installment of a plan: in words for an operator, and as facts for scripts."""

from __future__ import annotations

from typing import Any

from cuota.core import money
from cuota.core.dates import day
from cuota.core.installment import Installment
from cuota.core.instant import timestamp
from cuota.db.order.story import Story


def installment_line(item: Installment, found: Story, *, needs_card: bool) -> str:
    """Return an installment in one line: its amount, its day, and its result.

    `needs_card`: the plan's card is not charged any more, as the consumer's page says.
    """
    currency = found.order.currency
    text = f"{money.shown(item.total, currency)}, due {day(item.due_on, year=True)}: "
    paid = next((each for each in found.charged if each.charge_id == item.charge_id), None)
    if item.paid:
        card = f" by {paid.brand} {paid.last4} on {timestamp(paid.at)}" if paid else ""
        back = (
            f"; {money.shown(item.returned, currency)} of it was refunded to the card"
            if item.returned
            else ""
        )
        late = (
            f", after it was written off on {timestamp(item.written_off_at)}" if item.written_off_at else ""
        )
        return f"{text}paid{card}{late}{back}."
    if not item.total:
        return f"{text}canceled by a void or a refund."
    if item.written_off_at:
        return f"{text}written off on {timestamp(item.written_off_at)}; the consumer can still pay it."
    if found.order.paused_at is not None:
        return f"{text}paused while a dispute is open."
    tries = "1 charge" if item.failures == 1 else f"{item.failures} charges"
    failed = f"{tries} failed; " if item.failures else ""
    if item.charge_at is None or needs_card:
        return f"{text}{failed}the consumer must give another card."
    return f"{text}{failed}the card will be charged on {timestamp(item.charge_at)}."


def installment_facts(item: Installment) -> dict[str, Any]:
    """Return an installment for scripts."""
    return {
        "number": item.number,
        "amount": money.text_of(item.total),
        "dueDate": item.due_on.isoformat(),
        "state": item.state,
        "failures": item.failures,
        "returned": money.text_of(item.returned),
        "chargeAt": timestamp(item.charge_at) if item.charge_at else None,
        "writtenOffAt": timestamp(item.written_off_at) if item.written_off_at else None,
    }
