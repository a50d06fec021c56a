"""Changes the card of a plan."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta, tzinfo

from cuota.core.installment import Installment, owed
from cuota.core.order.order import Order, Status
from cuota.core.order.outcome import Outcome
from cuota.core.plan.card import PlanCard
from cuota.core.plan.collection import RETRIES, CardBusy, NewId, NothingOwed, with_changes
from cuota.core.plan.notice import Notice, NoticeKind
from cuota.core.plan.payday import timed

# A consumer gets at most one message about a changed card in this time.
CARD_TOLD_EVERY = timedelta(days=1)


def due_for_new_card(
    order: Order, plan: Sequence[Installment], zone: tzinfo, now: datetime
) -> list[Installment]:
    """Return the installments that a new card is charged for at once: the overdue ones. None while a dispute is open.

    After a lost chargeback, earlier releases marked all unpaid installments as failed, also those whose day has not come.
    """
    if order.paused_at is not None:
        return []
    today = now.astimezone(zone).date()
    return [item for item in owed(plan) if item.state == "overdue" and item.due_on <= today]


def change_card(
    order: Order,
    plan: Sequence[Installment],
    card: PlanCard,
    zone: tzinfo,
    now: datetime,
    new_id: NewId,
    told_at: datetime | None = None,
) -> Outcome:
    """Change the card. The new card pays from now on, and is charged at once for overdue payments, and for the others on their days.

    `told_at` is when the consumer last got a message about a changed card; there is at most one in CARD_TOLD_EVERY.
    Raises CardBusy while a charge of the old card is in progress, and NothingOwed if nothing is left to pay.
    """
    if order.charging is not None:
        raise CardBusy
    waiting = owed(plan) if order.status is Status.APPROVED else []
    if not waiting:
        raise NothingOwed
    due = due_for_new_card(order, plan, zone, now)
    overdue = [replace(item, charge_at=now, failures=1) for item in due]
    # While a dispute is open, no payment gets a day on which it is charged.
    failed = [item for item in waiting if item.state == "overdue"] if order.paused_at is None else []
    later = timed([item for item in failed if item not in due], zone, now)
    planned = [replace(item, failures=0) for item in later]
    # A written-off payment waits for the consumer. It no longer needs another card, and is not charged automatically.
    unasked = [replace(item, failures=len(RETRIES) + 1) for item in waiting if item.state == "written_off"]
    first = waiting[0]
    told = Notice(new_id(), NoticeKind.CARD_CHANGED, first.number, first.total, first.due_on, now)
    notices = () if told_at is not None and now - told_at < CARD_TOLD_EVERY else (told,)
    return replace(
        with_changes(order, plan, [*overdue, *planned, *unasked], notices=notices, now=now), plan_card=card
    )
