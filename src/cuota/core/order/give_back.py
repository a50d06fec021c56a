"""Code that voids and refunds share: the returned part of the fee, and the refunds to cards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, tzinfo
from uuid import UUID

from cuota.core import money
from cuota.core.installment import Cut, Installment, charge_day, upcoming
from cuota.core.order.job import CardRefund
from cuota.core.order.order import Order
from cuota.core.plan.notice import Notice, NoticeKind, PlanStanding


def fee_due(order: Order, amount: int) -> int:
    """Return the part of the plan's fee, in cents, that goes back together with `amount`.

    It is computed from everything voided and refunded so far, minus the fee already returned. Several small refunds therefore
    return exactly as much as one large refund, and giving back everything returns the whole fee. A chargeback takes back the whole
    fee of its payment, which may be a cent more than its share; later refunds then return less.
    """
    given_back = order.voided + order.refunded + amount
    return max(0, money.share(order.fee, given_back, order.amount) - order.fee_returned)


def card_refunds(done: Cut, new_id: Callable[[], UUID]) -> tuple[CardRefund, ...]:
    """Return one card refund for each charge, with amount and fee together."""
    return tuple(CardRefund(new_id(), charge_id, amount) for charge_id, amount in done.by_charge.items())


def changed(before: Sequence[Installment], after: Sequence[Installment]) -> tuple[Installment, ...]:
    """Return the installments that differ, because only those are written."""
    return tuple(new for old, new in zip(before, after, strict=True) if old != new)


def standing(
    plan: Sequence[Installment], back: dict[UUID, int] | None = None, zone: tzinfo | None = None
) -> PlanStanding:
    """Return the state of a plan for a notice. `back` is the amount refunded to the card of each charge.

    With the consumer's `zone`, the days are those of the charges; without, those on which the payments are due.
    """
    left = tuple(
        (item.due_on if zone is None else charge_day(item, zone), item.total) for item in upcoming(plan, zone)
    )
    return PlanStanding(left, tuple((back or {}).items()))


def notice(
    kind: NoticeKind,
    amount: int,
    before: Sequence[Installment],
    done: Cut,
    now: datetime,
    notice_id: UUID,
    zone: tzinfo | None = None,
) -> Notice:
    """Return the notice about a void or refund of `amount`: its effect on the plan, and the refunds to cards. `zone` as in `standing`."""
    first = changed(before, done.plan)[0]
    stands = standing(done.plan, done.by_charge, zone)
    return Notice(notice_id, kind, first.number, amount, now.date(), now, stands)
