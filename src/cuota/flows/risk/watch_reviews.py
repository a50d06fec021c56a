"""Counts the waiting reviews, so that an alarm can call a person before the deadline of a review."""

from __future__ import annotations

from cuota.db.risk import reviews
from cuota.flows.context import Context


async def watch_reviews(context: Context) -> int:
    """Count the waiting reviews, for the metrics. Return 0, so that the job waits before its next run."""
    found = await reviews.count(context.pool, context.now())
    context.reviews_wait(found.waiting, found.running_out)
    return 0
