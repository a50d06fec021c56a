"""Looks up a charge without a final answer, of a checkout or of a plan."""

from __future__ import annotations

from cuota.core.order.order import Order, Status
from cuota.db.plan.charges import PendingCharge
from cuota.flows.checkout.submit_checkout import finish_charge
from cuota.flows.context import Context
from cuota.flows.plan.collect_installments import finish_collection


async def finish_pending(context: Context, order: Order, pending: PendingCharge) -> bool:
    """Look up the order's charge and record its answer. Return False if the card rail still has no final answer."""
    finish = finish_charge if order.status is Status.CREATED else finish_collection
    return await finish(context, order.merchant_id, order.order_id, pending)
