"""The rules for an order's scheduled work: everything that must still happen has a time at which a job finds it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from cuota.core.installment import Installment, owed
from cuota.core.order.order import Order, Status
from cuota.core.plan.collection import ANNOUNCED_BEFORE
from cuota.core.plan.declines import ATTEMPTS_WITHIN
from cuota.core.plan.missed import APART
from cuota.core.plan.payday import Days
from cuota.db.order.columns import order_of

# An order that could not be settled is postponed by a minute (db/order/due.py). The clocks of two machines may differ. A new
# release of the time zones may move midnight by an hour.
POSTPONED = timedelta(hours=1)


def disagreements(facts: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield every row without the time at which it is due, or with a time that is too late, as (row, problem)."""
    order = order_of(facts)
    yield from _due(facts, order)
    yield from _charging(facts, order)
    if order.capturable and order.authorization_expires_at is None:
        yield "orders.authorization_expires_at", f"is missing, but {order.capturable} can still be captured"
    for refund_id in facts["refunds_not_due"]:
        yield f"card_refunds {refund_id}", "is pending, but no time says when it is sent"
    if order.status is not Status.APPROVED or order.paused_at is not None:
        return
    waiting = owed([Installment(*row) for row in facts["plan"]])
    for item in waiting:
        # An installment that failed may wait for another card, and one that was written off for the consumer.
        if item.charge_at is None and not item.failures and item.written_off_at is None:
            yield (
                f"installments {item.number}",
                f"{item.total} is unpaid, but no time says when it is charged",
            )
        if item.charge_at is not None and facts["agreed"]:
            latest = _latest(item, len(waiting), ZoneInfo(facts["time_zone"]), facts["read_at"])
            if item.charge_at > latest:
                yield (
                    f"installments {item.number}",
                    f"is charged at {item.charge_at}, the latest allowed time is {latest}",
                )


def _latest(item: Installment, waiting: int, zone: ZoneInfo, read_at: datetime) -> datetime:
    """Return the latest time of the next charge that the rules allow.

    A payment is charged on its day. A failed payment is retried within days. After its day, a payment may wait until the card
    networks allow another attempt, or because Cuota missed its day: all `waiting` payments may then be charged one after the other.
    Hardship, disputes and return notices move the day and the charge together.
    """
    day = Days(zone).charge_at(item.due_on)
    if item.failures or day <= read_at:
        return max(day, read_at) + max(ATTEMPTS_WITHIN, ANNOUNCED_BEFORE + APART * waiting) + POSTPONED
    return day + POSTPONED


def _due(facts: dict[str, Any], order: Order) -> Iterator[tuple[str, str]]:
    """Check that the job for due orders finds the order in time. An earlier time is harmless."""
    said, expected = facts["due_at"], order.due_at
    if expected is None or (said is not None and said <= max(expected, facts["read_at"] + POSTPONED)):
        return
    yield "orders.due_at", f"is {said}, its next work is due at {expected}"


def _charging(facts: dict[str, Any], order: Order) -> Iterator[tuple[str, str]]:
    """Check that the order names the charge whose answer is missing."""
    pending = [charge_id for charge_id, _, _, state in facts["charged"] if state == "pending"]
    if pending != ([] if order.charging is None else [order.charging]):
        named = ", ".join(map(str, pending)) or "none"
        yield "orders.charging", f"is {order.charging}, the charges without an answer are: {named}"
