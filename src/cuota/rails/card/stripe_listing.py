"""Lists Stripe's events from a time on, the earliest first, and only some in one call.

Stripe lists the newest events first. After an outage of days, all events since its beginning could not be read within the timeout of a
call, so the list is read forward, from the last event before that time.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from time import monotonic

import stripe

from cuota.rails.bounded import SECONDS
from cuota.rails.card.protocol import CardEvent
from cuota.rails.card.stripe_calls import PAGE, Json, all_of, answered
from cuota.rails.card.stripe_events import TYPES, MetadataOf, card_event

# A call ends after this many pages, or after this time: an event about a dispute needs a request of its own. So a call never reaches the
# timeout with events that it has read, which the next call would read again in vain.
MOST_PAGES = 5
ENOUGH = SECONDS / 3


async def earliest_events(
    client: stripe.StripeClient, since: datetime, metadata_of: MetadataOf
) -> list[CardEvent]:
    """Return the events since that time, oldest first. If there are many, return only the oldest of them.

    If any event is later than `since`, then the last returned one is, too: the service continues from its time. Otherwise, a call that
    returns only events of the time `since` would look like the end of the list.
    """
    begin = int(since.timestamp())
    read = _Reading(since, monotonic() + ENOUGH, metadata_of)
    before = await _page(client, {"created": {"lt": begin}, "types": list(TYPES), "limit": 1})
    if not before:
        # Nothing tells where to begin, so this reads the whole list.
        asked: stripe.params.EventListParams = {
            "created": {"gte": begin}, "types": list(TYPES), "limit": PAGE,
        }  # fmt: skip
        await read.add(await all_of(client.v1.events.list_async(asked)))
        return read.found
    place, pages = before[0]["id"], 0
    while pages < MOST_PAGES or not read.advances:
        page = await _page(client, {"types": list(TYPES), "ending_before": place, "limit": PAGE})
        await read.add(page)
        pages += 1
        if len(page) < PAGE or read.is_over:
            break
        place = page[0]["id"]
    return read.found


class _Reading:
    """The events that a call has found, until its time is over."""

    def __init__(self, since: datetime, until: float, metadata_of: MetadataOf) -> None:
        self._since, self._until, self._metadata_of = since, until, metadata_of
        self.found: list[CardEvent] = []

    @property
    def advances(self) -> bool:
        """True if the service can continue behind the last event."""
        return bool(self.found) and self.found[-1].at > self._since

    @property
    def is_over(self) -> bool:
        return self.advances and monotonic() >= self._until

    async def add(self, listed: Sequence[Json]) -> None:
        """Read a page of the list, whose newest event comes first. Begin with the oldest one."""
        for each in reversed(listed):
            event = await card_event(each, self._metadata_of)
            if event is not None:
                self.found.append(event)
            if self.is_over:
                break


async def _page(client: stripe.StripeClient, asked: stripe.params.EventListParams) -> list[Json]:
    listed = await answered(client.v1.events.list_async(asked))
    return [each.to_dict() for each in listed.data]
