"""A charge of a plan that the card rail does not know: request it again, wait, or end it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from cuota.core.installment import Installment
from cuota.core.order.job import JobState, Settled
from cuota.core.order.order import Order
from cuota.core.order.outcome import Outcome
from cuota.core.plan.charge import NEVER_SENT, Charge, Origin
from cuota.core.plan.collection import with_changes
from cuota.core.plan.missed import was_missed

# A request has surely ended this long after it began: it has arrived at the rail, or never will. A call may take ten seconds
# (rails/bounded.py). The rest is for a process or a network that stood still in between.
SURE_AFTER = timedelta(minutes=5)


def may_repeat(
    order: Order, plan: Sequence[Installment], charge: Charge, now: datetime, *, refused: bool, disputed: bool
) -> bool:
    """Return whether the charge would still begin now: with this amount, to this card, and on the payment's day.

    `refused`: the card must not be charged any more. `disputed`: a dispute about the order closed after the charge began. A
    dispute moves the unpaid payments to later days.
    """
    item = plan[charge.installment - 1]
    scheduled = charge.origin is Origin.SCHEDULE
    moved = disputed or (
        scheduled and (item.charge_at is None or item.charge_at > now or was_missed(item, now))
    )
    return order.paused_at is None and not refused and not moved and item.total == charge.amount


def request_again(order: Order, now: datetime) -> Outcome:
    """Record that the same charge is requested again now."""
    return Outcome(order=replace(order, charging_since=now), at=now)


def end(
    order: Order, plan: Sequence[Installment], charge: Charge, looked_up_at: datetime, now: datetime
) -> Outcome | None:
    """End a charge that the rail did not know when it was looked up. The payment continues by the plan's rules.

    The card did not decline, so nothing counts as a failure, and nobody is told. Returns None while the last request may still
    be on its way to the rail.
    """
    assert order.charging == charge.charge_id
    assert order.charging_since is not None
    if looked_up_at < order.charging_since + SURE_AFTER:
        return None
    settled = Settled(charge.charge_id, JobState.FAILED, NEVER_SENT)
    return replace(with_changes(order, plan, [], now=now, charging=False), charge_settled=settled)
