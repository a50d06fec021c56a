"""Marks a refund that was made elsewhere, or that failed later, as settled: an operator has dealt with it."""

from __future__ import annotations

from cuota.core.expected_failure import ExpectedFailure
from cuota.db.plan import rail_figures
from cuota.flows.context import Context


class NoRefundEvent(ExpectedFailure):
    """No such event is stored. The text says where the ids are listed."""


async def settle_refund_event(context: Context, event_id: str) -> bool:
    """Mark the event. Return False if it was marked before. Raises NoRefundEvent."""
    found = await rail_figures.refund_events(context.pool, event_id)
    if not found:
        message = f"No refund that was made elsewhere or failed later has the event {event_id}. List them with: cuota rails"
        raise NoRefundEvent(message)
    now = context.now()
    marked = [await rail_figures.settle(context.pool, whose, rail, event_id, now) for whose, rail in found]
    return any(marked)
