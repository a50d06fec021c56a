"""A first payment that the card rail does not know: request it again, wait, or end it.

An outage may last for days. By then the consumer has left, and has perhaps bought elsewhere, and the days of the agreed plan have
passed. So the payment is not requested after the order's time.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from cuota.core.order.job import JobState, Settled
from cuota.core.order.order import Order
from cuota.core.order.outcome import Outcome
from cuota.core.plan.charge import NEVER_SENT
from cuota.core.plan.unsent import SURE_AFTER

# A consumer who paid in the last minute of the order's time waits this long for a rail that is briefly down.
AT_LEAST = timedelta(minutes=15)


def may_repeat_first(order: Order, asked_at: datetime, now: datetime) -> bool:
    """Return whether the payment that the consumer made at `asked_at` may be requested again."""
    return now < _last_request(order, asked_at)


def end_first(order: Order, asked_at: datetime, looked_up_at: datetime, now: datetime) -> Outcome | None:
    """End a payment that the rail did not know when it was looked up. The card did not decline, so nothing counts as a failure.

    Returns None while the last request may still be on its way to the rail.
    """
    assert order.charging is not None
    if looked_up_at < _last_request(order, asked_at) + SURE_AFTER:
        return None
    settled = Settled(order.charging, JobState.FAILED, NEVER_SENT)
    return Outcome(order=replace(order, charging=None, charging_since=None), charge_settled=settled, at=now)


def _last_request(order: Order, asked_at: datetime) -> datetime:
    return max(order.expires_at, asked_at + AT_LEAST)
