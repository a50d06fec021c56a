"""The job for orders that need work.

That is: a charge to look up, a review without an answer, a checkout that timed out, an authorization that ends, a payment or
reminder that is due.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from datetime import timedelta
from uuid import UUID

from cuota.core.order.order import LOOK_UP_AFTER, Order, Status
from cuota.core.refusal import Refused
from cuota.core.risk.review import ReviewState
from cuota.db.hosts import NodeLost
from cuota.db.order import due, orders
from cuota.db.plan import charges
from cuota.db.pool import GONE
from cuota.flows.checkout.leave_checkout import lapse_order
from cuota.flows.context import Context
from cuota.flows.order.expire_authorizations import expire_authorization
from cuota.flows.plan.collect_installments import collect
from cuota.flows.plan.finish_pending import finish_pending
from cuota.flows.risk.answer_review import decline_unanswered

# The oldest due orders of one pass. A pass is short, because the process finishes it before it stops.
BATCH = 100
# Several at a time, so that slow answers of the card rail about some orders do not delay the others, and so that orders of one
# merchant are read and saved together.
AT_ONCE = 16
# How long an order that failed waits before it is retried. Without this pause, BATCH failing orders would fill each pass and
# delay the others.
ASIDE = timedelta(minutes=1)
log = logging.getLogger("cuota.work")


async def settle_due_orders(context: Context) -> int:
    """Settle the orders that are due, a few at a time. Return how many were settled."""
    places = asyncio.Semaphore(AT_ONCE)

    async def settle(merchant_id: UUID, order_id: UUID) -> bool:
        async with places:
            try:
                return await _settle_one(context, merchant_id, order_id)
            except Refused as busy:
                log.warning("order waits", extra={"facts": {"orderId": str(order_id), "code": busy.code}})
            except GONE as lost:
                # The order stays due. It is settled when the database, or the order's node in a cluster, is back.
                code = "node_lost" if isinstance(lost, NodeLost) else "session_lost"
                log.warning("order waits", extra={"facts": {"orderId": str(order_id), "code": code}})
            except Exception:
                # An order that cannot be settled must not stop the others.
                log.exception("order failed", extra={"facts": {"orderId": str(order_id)}})
                now = context.now()
                with contextlib.suppress(Refused, *GONE):
                    await due.step_aside(context.pool, merchant_id, order_id, now, now + ASIDE)
            return False

    found = await due.due_orders(context.pool, context.now(), BATCH)
    return sum(await asyncio.gather(*(settle(merchant_id, order_id) for merchant_id, order_id in found)))


async def _settle_one(context: Context, merchant_id: UUID, order_id: UUID) -> bool:
    """Settle one order. Return False if it is still due, so that the loop pauses before it calls the card rail again."""
    found = await orders.read_with_plan(context.pool, merchant_id, order_id)
    if found is None:
        return False
    order, now = found.order, context.now()
    # Check the authorization first: an uncaptured amount must not be charged, and a card rail that does not answer must
    # not delay a void.
    if order.authorization_due_at is not None and order.authorization_due_at <= now:
        await expire_authorization(context, merchant_id, order_id)
    if order.charging is not None:
        # A charge that began after the order was found is not due: its own request waits for the answer.
        is_due = order.due_at is not None and order.due_at <= now
        if is_due and not await _finish(context, order):
            return False
    elif order.review is ReviewState.WAITING:
        await decline_unanswered(context, merchant_id, order_id)
    elif order.status is Status.CREATED:
        await lapse_order(context, merchant_id, order_id)
    elif order.collect_at is not None and order.collect_at <= now:
        await collect(context, merchant_id, order_id)
    return True


async def _finish(context: Context, order: Order) -> bool:
    """Look up a charge that has no answer. If there is still none, the order goes to the end of the queue."""
    assert order.charging is not None
    pending = await charges.pending(context.pool, order.merchant_id, order.order_id)
    if pending is None:
        return True
    if await finish_pending(context, order, pending):
        return True
    now = context.now()
    await due.step_aside(context.pool, order.merchant_id, order.order_id, now, now + LOOK_UP_AFTER)
    return False
