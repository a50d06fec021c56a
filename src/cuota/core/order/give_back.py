"""What a void and a refund share: the fee that goes with them, and the money that returns to cards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from uuid import UUID

from cuota.core import money
from cuota.core.installment import Cut, Installment, owed
from cuota.core.order.job import CardRefund
from cuota.core.order.order import Order
from cuota.core.plan.notice import Notice, NoticeKind, PlanStanding


def fee_due(order: Order, amount: int) -> int:
    """The part of the plan's fee that goes back with `amount`: pro rata of all given back so far, less returned.

    Counted from the running total, so that many small refunds add up to exactly one large one, and a full
    give-back returns the whole fee.
    """
    given_back = order.voided + order.refunded + amount
    return money.share(order.fee, given_back, order.amount) - order.fee_returned


def card_refunds(done: Cut, new_id: Callable[[], UUID]) -> tuple[CardRefund, ...]:
    """One card refund a charge, principal and fee together."""
    return tuple(CardRefund(new_id(), charge_id, amount) for charge_id, amount in done.by_charge.items())


def changed(before: Sequence[Installment], after: Sequence[Installment]) -> tuple[Installment, ...]:
    """Only the installments that differ are written."""
    return tuple(new for old, new in zip(before, after, strict=True) if old != new)


def standing(plan: Sequence[Installment], back: dict[UUID, int] | None = None) -> PlanStanding:
    """How a plan stands, as a notice tells it; `back` is what goes back to the card of which charge."""
    left = tuple((item.due_on, item.total) for item in owed(plan))
    return PlanStanding(left, tuple((back or {}).items()))


def notice(
    kind: NoticeKind, amount: int, before: Sequence[Installment], done: Cut, now: datetime, notice_id: UUID
) -> Notice:
    """Tell the consumer of a void or refund of `amount`: what it did to the plan, and what goes back."""
    first = changed(before, done.plan)[0]
    return Notice(notice_id, kind, first.number, amount, now.date(), now, standing(done.plan, done.by_charge))
