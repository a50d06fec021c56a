"""Fetches the processors' events since the last fetch, because some events are never delivered."""

from __future__ import annotations

import logging
from datetime import datetime, timedelta

from cuota.db.plan import card_rails
from cuota.flows.context import Context
from cuota.flows.plan.store_card_event import store_card_event
from cuota.rails.unavailable import RailUnavailable

# A processor may list an event some time after it happened. Events that are already stored are not stored again.
OVERLAP = timedelta(hours=1)
# After this many calls, the job ends and begins again, so that a stop of the service does not wait for it.
MOST_CALLS = 40
log = logging.getLogger("cuota.work")


async def begin_fetching(context: Context) -> None:
    """Store the rails of this installation, so that their events are fetched from now on."""
    await card_rails.begin(context.pool, list(context.rails.card.by_name), context.now())


async def fetch_card_events(context: Context) -> int:
    """Fetch the events of each rail that is due. Return how many were new."""
    await begin_fetching(context)
    now, names = context.now(), list(context.rails.card.by_name)
    due = await card_rails.claim(context.pool, names, now, context.real_now())
    return sum([await _fetch(context, name, since, now) for name, since in due.items()])


async def _fetch(context: Context, name: str, since: datetime, now: datetime) -> int:
    """Fetch the events since then, in several calls if there are many, as after an outage. Return how many were new."""
    new, begin = 0, since - OVERLAP
    for _ in range(MOST_CALLS):
        try:
            events = await context.rails.card.events_since(name, begin)
        except RailUnavailable as problem:
            log.warning("card events not fetched", extra={"facts": {"rail": name, "problem": str(problem)}})
            await card_rails.failed(context.pool, name, str(problem)[:200])
            return new
        new += sum([await store_card_event(context, name, event) for event in events])
        newest = max((event.at for event in events), default=begin)
        if newest <= begin:
            # Nothing is later than the last call's events.
            await card_rails.fetched(context.pool, name, now, max(newest, since))
            return new
        begin = newest
        await card_rails.advanced(context.pool, name, newest)
    # The rest follows at once.
    await card_rails.fetch_soon(context.pool, now)
    return new
