"""Watches the reviews that wait, so that an alarm can call a person before their time runs out."""

from __future__ import annotations

from cuota.db.risk import reviews
from cuota.flows.context import Context


async def watch_reviews(context: Context) -> int:
    """Count the reviews that wait, for the metrics. Return 0, so that the job rests afterwards."""
    found = await reviews.count(context.pool, context.now())
    context.reviews_wait(found.waiting, found.running_out)
    return 0
