"""Asks card processors to delete erased consumers. If a processor does not answer, a background job retries."""

from __future__ import annotations

import logging

from cuota.db.privacy import card_erasures
from cuota.flows.context import Context
from cuota.rails.bounded import SECONDS
from cuota.rails.unavailable import RailUnavailable

BATCH = 5
# Each claimed request is answered or times out before its lease ends.
assert card_erasures.LEASE.total_seconds() >= BATCH * 2 * SECONDS
log = logging.getLogger("cuota.work")


async def forget_cards(context: Context) -> int:
    """Send the due requests to the processors. Return how many consumers they have deleted."""
    rails = context.rails.card
    claimed = await card_erasures.claim(context.pool, list(rails.by_name), context.real_now(), BATCH)
    deleted = 0
    for due in claimed:
        try:
            await rails.forget(due.rail, due.consumer_id)
        except RailUnavailable as problem:
            log.warning("consumer not deleted", extra={"facts": {"rail": due.rail, "problem": str(problem)}})
            await card_erasures.try_later(context.pool, due, context.real_now())
            continue
        await card_erasures.done(context.pool, due)
        deleted += 1
    return deleted
