"""After an outage of days, a card processor has more events than one call can list: all of them are fetched, in several calls."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from uuid import UUID

import pytest

from cuota.flows.context import Context
from cuota.flows.plan import fetch_card_events as fetching
from cuota.flows.plan.fetch_card_events import fetch_card_events
from cuota.rails.card.protocol import CardEvent, CardEventKind
from cuota.rails.card.rails import CardRails
from cuota.rails.unavailable import RailUnavailable
from support.own_service import Own

EVENTS, AT_ONCE = 20, 3


class FewAtOnce(CardRails):
    """A rail whose processor has had many events. One call returns the oldest AT_ONCE of them, or fails if its number is `fails`."""

    def __init__(self, rail: CardRails, events: list[CardEvent], fails: int = 0) -> None:
        super().__init__(rail.active)
        self.events, self.calls, self.fails = events, 0, fails

    async def events_since(self, name: str, since: datetime) -> list[CardEvent]:
        self.calls += 1
        if self.calls == self.fails:
            raise RailUnavailable("no answer")
        return [event for event in self.events if event.at >= since][:AT_ONCE]


def with_few(own: Own, events: list[CardEvent], fails: int = 0) -> Context:
    rail = FewAtOnce(own.context.rails.card, events, fails)
    return replace(own.context, rails=replace(own.context.rails, card=rail))


async def missed(own: Own) -> list[CardEvent]:
    """Let the service be down for days. Return the processor's events of these days, one an hour."""
    await fetch_card_events(own.context)
    order = await own.auto_merchant.approved("100.00")
    ids, began = (own.auto_merchant.merchant_id, UUID(order["orderId"])), own.context.now()
    own.service.clock.ahead += timedelta(days=3)
    return [
        CardEvent(f"evt_{number}", CardEventKind.CHARGE_CHANGED, began + timedelta(hours=number), *ids)
        for number in range(EVENTS)
    ]


async def stored(own: Own) -> int:
    [row] = await own.context.pool.fetch("SELECT count(*) AS events FROM card_events")
    return int(row["events"])


async def test_after_an_outage_of_days_all_events_are_fetched_in_one_run(own: Own) -> None:
    context = with_few(own, await missed(own))
    assert await fetch_card_events(context) == EVENTS
    own.service.clock.ahead += timedelta(days=1)
    assert await fetch_card_events(context) == 0
    assert await stored(own) == EVENTS


async def test_a_call_that_fails_loses_nothing_that_earlier_calls_have_fetched(
    own: Own, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("CRITICAL", "cuota.work")
    context = with_few(own, await missed(own), fails=4)
    first = await fetch_card_events(context)
    assert 0 < first < EVENTS
    own.service.clock.ahead += timedelta(days=1)
    assert await fetch_card_events(context) == EVENTS - first
    assert await stored(own) == EVENTS


async def test_a_very_long_list_is_continued_by_the_next_run_at_once(
    own: Own, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fetching, "MOST_CALLS", 3)
    context = with_few(own, await missed(own))
    runs = 0
    while await fetch_card_events(context):
        runs += 1
    assert (await stored(own), runs > 1) == (EVENTS, True)
