"""Decides about a first payment that the card rail does not know: request it again while the order is open, then end it."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from cuota.core.checkout.unsent_first import end_first, may_repeat_first
from cuota.core.order.outcome import Outcome
from cuota.db.order import orders
from cuota.db.order.orders import Found
from cuota.db.plan.charges import PendingCharge
from cuota.flows.charge_card import AllowRepeat
from cuota.flows.context import Context
from cuota.flows.plan.return_late_charge import settle_unsent


def allow_first_charge(
    context: Context, merchant_id: UUID, order_id: UUID, pending: PendingCharge
) -> AllowRepeat:
    """Return the function that decides after a look-up which found no charge. The job for due orders then abandons the order."""
    charge_id = pending.charge.charge_id

    async def allow(looked_up_at: datetime) -> bool:
        repeats = False

        def decide(found: Found) -> tuple[Outcome | None, datetime | None]:
            nonlocal repeats
            order, now = found.order, context.now()
            known = order.charging == charge_id
            repeats = known and may_repeat_first(order, pending.asked_at, now)
            if repeats or not known:
                return None, None
            return end_first(order, pending.asked_at, looked_up_at, now), pending.asked_at

        await settle_unsent(context, merchant_id, order_id, charge_id, decide, orders.read_with_plan)
        return repeats

    return allow
