"""An endpoint with a queue that is too long for one statement can get a new address, be removed, and be replayed."""

from __future__ import annotations

from uuid import UUID

import pytest

from cuota.db.webhook import deliveries, endpoints, events, replays
from cuota.db.webhook.lanes import lanes_due
from cuota.flows.webhook.park_removed import park_removed
from support.webhook.couriers import Post
from support.webhook.listeners import hooked

STATES = "SELECT array_agg(state ORDER BY position) FROM deliveries WHERE receiver = $1::uuid"


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """A statement changes at most two deliveries."""
    monkeypatch.setattr(endpoints, "AT_ONCE", 2)
    monkeypatch.setattr(replays, "POSITIONS_AT_ONCE", 2)


async def waiting(post: Post, url: str, orders: int = 5) -> str:
    """Return an endpoint with this many events that were not sent yet."""
    made = await post.register(url)
    for _ in range(orders):
        await post.merchant.create()
    await post.publish()
    return str(made["id"])


async def test_after_a_change_no_delivery_goes_to_the_old_address(post: Post) -> None:
    async with hooked() as (old, old_at), hooked() as (new, new_at):
        endpoint = await waiting(post, old_at.url)
        moved = await post.merchant.http.patch(f"/webhook-endpoints/{endpoint}", json={"url": new_at.url})
        assert moved.status_code == 200
        await post.deliver()
        assert (len(old.got), len(new.got)) == (0, 5)
        assert await post.ask("SELECT array_agg(DISTINCT url) FROM deliveries") == [new_at.url]


async def test_a_retry_goes_to_the_new_address(post: Post) -> None:
    async with hooked() as (old, old_at), hooked() as (new, new_at):
        old.status = 500
        endpoint = await waiting(post, old_at.url)
        await post.deliver()
        before = len(old.got)
        await post.merchant.http.patch(f"/webhook-endpoints/{endpoint}", json={"url": new_at.url})
        await post.ask("UPDATE deliveries SET try_at = created_at WHERE state = 'pending'")
        await post.deliver()
        assert (len(old.got), len(new.got)) == (before, 5)


async def test_a_removed_endpoint_gets_nothing_and_all_its_deliveries_are_parked(post: Post) -> None:
    async with hooked() as (hook, at):
        endpoint = await waiting(post, at.url)
        assert (await post.merchant.http.delete(f"/webhook-endpoints/{endpoint}")).status_code == 200
        assert await post.ask(STATES, endpoint) == ["parked"] * 2 + ["pending"] * 3
        await post.deliver()
        assert hook.got == []
        assert [await park_removed(post.own.context) for _ in range(3)] == [2, 1, 0]
        assert await post.ask(STATES, endpoint) == ["parked"] * 5


async def test_a_claim_that_found_the_queue_before_the_endpoint_was_removed_takes_nothing(post: Post) -> None:
    endpoint = await waiting(post, "http://127.0.0.1:9/hook")
    context = post.own.context
    (lane,) = await lanes_due(context.pool, context.now())
    assert (await post.merchant.http.delete(f"/webhook-endpoints/{endpoint}")).status_code == 200
    claimed = await deliveries.claim(context.pool, lane.merchant_id, context.now(), {lane: 10})
    assert claimed == ([], 0)


@pytest.mark.parametrize("before", [True, False])
async def test_a_long_replay_sends_every_event_once(post: Post, *, before: bool) -> None:
    """`before`: the events happened before the endpoint was registered."""
    async with hooked() as (hook, at):
        endpoint = await waiting(post, at.url, 0 if before else 5)
        if before:
            await waiting(post, "http://127.0.0.1:9/hook")
            await post.ask("DELETE FROM deliveries WHERE receiver = $1::uuid", endpoint)
        await post.deliver()
        hook.got.clear()
        again = await post.merchant.http.post(f"/webhook-endpoints/{endpoint}/replay", json={})
        assert again.json() == {"replayed": 5}
        await post.deliver()
        assert len({came.event["id"] for came in hook.got}) == len(hook.got) == 5


async def test_a_replay_of_a_range_stops_at_its_last_event(post: Post) -> None:
    endpoint = await waiting(post, "http://127.0.0.1:9/hook")
    feed = await events.page(post.own.context.pool, post.merchant.merchant_id, 0, 10)
    names = [event["id"] for event in await post.events()]
    await post.ask("UPDATE deliveries SET state = 'parked', try_at = NULL")
    body = {"after": names[0], "until": names[3]}
    again = await post.merchant.http.post("/events/replay", json=body)
    assert again.json() == {"replayed": 3}
    assert len(feed) == 5
    assert await post.ask(STATES, UUID(endpoint)) == ["parked", *["pending"] * 3, "parked"]
