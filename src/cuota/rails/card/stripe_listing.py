"""Lists Stripe's events from a time on, the earliest first, and only some in one call.

Stripe lists the newest events first. After an outage of days, all events since its beginning could not be read within the timeout of a
call, so the list is read forward, from the last event before that time.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

import stripe

from cuota.rails.card.protocol import CardEvent
from cuota.rails.card.stripe_calls import PAGE, Json, all_of, answered
from cuota.rails.card.stripe_events import TYPES, MetadataOf, card_event

# A call ends after this many pages, but not before it has found an event for the service: the caller continues behind the last one.
MOST_PAGES = 5


async def earliest_events(
    client: stripe.StripeClient, since: datetime, metadata_of: MetadataOf
) -> list[CardEvent]:
    """Return the events since that time, oldest first. If there are many, return only the oldest of them."""
    begin = int(since.timestamp())
    before = await _page(client, {"created": {"lt": begin}, "types": list(TYPES), "limit": 1})
    if not before:
        # Nothing tells where to begin, so this reads the whole list.
        asked: stripe.params.EventListParams = {
            "created": {"gte": begin}, "types": list(TYPES), "limit": PAGE,
        }  # fmt: skip
        return await _read(await all_of(client.v1.events.list_async(asked)), metadata_of)
    place, found, pages = before[0]["id"], list[CardEvent](), 0
    while not found or pages < MOST_PAGES:
        page = await _page(client, {"types": list(TYPES), "ending_before": place, "limit": PAGE})
        found += await _read(page, metadata_of)
        pages += 1
        if len(page) < PAGE:
            break
        place = page[0]["id"]
    return found


async def _page(client: stripe.StripeClient, asked: stripe.params.EventListParams) -> list[Json]:
    listed = await answered(client.v1.events.list_async(asked))
    return [each.to_dict() for each in listed.data]


async def _read(listed: Iterable[Json], metadata_of: MetadataOf) -> list[CardEvent]:
    """Read a page of the list, whose newest event comes first. Return the oldest one first."""
    read = [await card_event(event, metadata_of) for event in reversed(list(listed))]
    return [event for event in read if event is not None]
