"""Orders for which something is due: a charge to look up, a consumer who never came back, an authorization's end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from datetime import timedelta
from uuid import UUID

from cuota.core.order.order import Order, Status
from cuota.core.refusal import Refused
from cuota.db.order import orders
from cuota.db.plan import charges
from cuota.db.pool import GONE
from cuota.flows.checkout.leave_checkout import lapse_order
from cuota.flows.checkout.submit_checkout import finish_charge
from cuota.flows.context import Context
from cuota.flows.order.expire_authorizations import expire_authorization
from cuota.flows.plan.collect_installments import collect, finish_collection, wait_longer

BATCH = 100
# So a rail that is slow to answer about some orders does not keep the others waiting.
AT_ONCE = 8
# One that fails is not at the head of the queue again at once: a hundred such would leave nobody else a turn.
ASIDE = timedelta(minutes=1)
log = logging.getLogger("cuota.work")


async def settle_due_orders(context: Context) -> int:
    """Settle what is due now, a few at a time; answers how many were settled."""
    places = asyncio.Semaphore(AT_ONCE)

    async def settle(merchant_id: UUID, order_id: UUID) -> bool:
        async with places:
            try:
                return await _settle_one(context, merchant_id, order_id)
            except Refused as busy:
                log.warning("order waits", extra={"facts": {"orderId": str(order_id), "code": busy.code}})
            except Exception:
                # One order that cannot be settled holds up no other.
                log.exception("order failed", extra={"facts": {"orderId": str(order_id)}})
                now = context.now()
                with contextlib.suppress(Refused, *GONE):
                    await orders.step_aside(context.pool, merchant_id, order_id, now, now + ASIDE)
            return False

    due = await orders.due(context.pool, context.now(), BATCH)
    return sum(await asyncio.gather(*(settle(merchant_id, order_id) for merchant_id, order_id in due)))


async def _settle_one(context: Context, merchant_id: UUID, order_id: UUID) -> bool:
    """False where it is still due: the loop rests before it asks the rail again."""
    found = await orders.read_with_plan(context.pool, merchant_id, order_id)
    if found is None:
        return False
    order, now = found.order, context.now()
    # First of all: what was never captured is not charged, and a silent card rail holds up no void.
    if order.authorization_due_at is not None and order.authorization_due_at <= now:
        await expire_authorization(context, merchant_id, order_id)
    if order.charging is not None:
        if not await _finish(context, order):
            return False
    elif order.status is Status.CREATED:
        await lapse_order(context, merchant_id, order_id)
    elif order.collect_at is not None and order.collect_at <= now:
        await collect(context, merchant_id, order_id)
    return True


async def _finish(context: Context, order: Order) -> bool:
    """A charge without an answer is looked up; without one still, it goes to the end of the queue."""
    assert order.charging is not None
    pending = await charges.pending(context.pool, order.merchant_id, order.order_id)
    if pending is None:
        return True
    finish = finish_charge if order.status is Status.CREATED else finish_collection
    if await finish(context, order.merchant_id, order.order_id, pending):
        return True
    await wait_longer(context, order.merchant_id, order.order_id, order.charging)
    return False
