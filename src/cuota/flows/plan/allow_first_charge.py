"""Decides about a first payment that the card rail does not know: request it again while the order is open, then end it."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from cuota.core.checkout.unsent_first import end_first, may_repeat_first
from cuota.core.order.outcome import Outcome
from cuota.db.order.orders import Found
from cuota.db.plan.charges import PendingCharge
from cuota.flows.charge_card import AllowRepeat
from cuota.flows.context import Context
from cuota.flows.plan.return_late_charge import look_again_later
from cuota.flows.settle import settle


def allow_first_charge(
    context: Context, merchant_id: UUID, order_id: UUID, pending: PendingCharge
) -> AllowRepeat:
    """Return the function that decides after a look-up which found no charge. The job for due orders then abandons the order."""
    charge_id = pending.charge.charge_id

    async def allow(looked_up_at: datetime) -> bool:
        repeats, ends = False, False
        # A crash after the end could lose the later look-ups of the charge, so they are stored before the end.
        watched = False

        def decide(found: Found) -> Outcome | None:
            nonlocal repeats, ends
            order, now = found.order, context.now()
            known = order.charging == charge_id
            repeats = known and may_repeat_first(order, pending.asked_at, now)
            ended = None if repeats or not known else end_first(order, pending.asked_at, looked_up_at, now)
            ends = ended is not None
            return ended if watched else None

        await settle(context, merchant_id, order_id, decide)
        if ends:
            await look_again_later(context, merchant_id, order_id, charge_id, pending.asked_at)
            watched = True
            await settle(context, merchant_id, order_id, decide)
        return repeats

    return allow
