"""Looks up a charge without a final answer, of a checkout or of a plan."""

from __future__ import annotations

from cuota.core.order.order import Order, Status
from cuota.db.plan.charges import PendingCharge
from cuota.flows.checkout.submit_checkout import finish_charge
from cuota.flows.context import Context
from cuota.flows.plan.allow_first_charge import allow_first_charge
from cuota.flows.plan.collect_installments import finish_collection


async def finish_pending(context: Context, order: Order, pending: PendingCharge) -> bool:
    """Look up the order's charge and record its answer. Return False if the card rail still has no final answer."""
    ids = order.merchant_id, order.order_id
    if order.status is not Status.CREATED:
        return await finish_collection(context, *ids, pending)
    return await finish_charge(context, *ids, pending, allow_first_charge(context, *ids, pending))
