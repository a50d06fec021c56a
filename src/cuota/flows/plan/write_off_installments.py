"""Writes off installments that are overdue for too long, as a background job."""

from __future__ import annotations

import logging
from functools import partial
from uuid import UUID

from cuota.core.order.outcome import Outcome
from cuota.core.order.write_off import last_day, write_off
from cuota.core.refusal import Refused
from cuota.db.hosts import NodeLost
from cuota.db.order import orders
from cuota.db.order.orders import Found
from cuota.db.plan import write_offs
from cuota.flows.context import Context
from cuota.flows.settle import settle

BATCH = 100
# After this many orders the job ends, so that a stop of the service does not wait for it. The next run continues.
MOST = 500
_FIRST = UUID(int=0)
log = logging.getLogger("cuota.work")


async def write_off_installments(context: Context) -> int:
    """Write off all due installments. Return the number of orders that were changed."""
    done, until = 0, last_day(context.now(), context.settings.write_off_days)
    for merchant_id in await write_offs.merchants_due(context.pool, until):
        after = _FIRST
        while done < MOST and (batch := await write_offs.due(context.pool, merchant_id, until, after, BATCH)):
            for order_id in batch:
                done += await _write_off(context, merchant_id, order_id)
            after = batch[-1]
    return done


async def _write_off(context: Context, merchant_id: UUID, order_id: UUID) -> bool:
    """Write off the due installments of one order. If the order cannot be saved now, the next run retries it."""
    facts = {"orderId": str(order_id)}
    try:
        outcome = await write_off_order(context, merchant_id, order_id)
    except (Refused, NodeLost) as busy:
        log.warning("write-off waits", extra={"facts": {**facts, "problem": type(busy).__name__}})
    except Exception:
        # One order that cannot be written off must not stop the others.
        log.exception("write-off failed", extra={"facts": facts})
    else:
        return outcome is not None
    return False


async def write_off_order(context: Context, merchant_id: UUID, order_id: UUID) -> Outcome | None:
    """Write off the due installments of one order, once. Return None if there was nothing to do."""
    decide = partial(_decide, context)
    return (
        await settle(context, merchant_id, order_id, decide, orders.read_with_plan, save=write_offs.save)
    ).outcome


def _decide(context: Context, found: Found) -> Outcome | None:
    now, days = context.now(), context.settings.write_off_days
    return write_off(found.order, found.plan, days, now, context.new_id)
