"""An endpoint that changes while events are published or replayed: each event goes to the new address, or to none."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from uuid import UUID

import pytest

from cuota.db.webhook import events, replays
from cuota.flows.context import utc_now
from cuota.flows.webhook.manage_endpoints import Change, change, remove
from support.db.locks import Holder, holder
from support.webhook.couriers import Post

OLD, NEW = "https://old.example/hooks", "https://new.example/hooks"
MOVE = "UPDATE webhook_endpoints SET url = $2 WHERE endpoint_id = $1"
REMOVE = "UPDATE webhook_endpoints SET state = 'deleted' WHERE endpoint_id = $1"
COUNT = "SELECT count(*) FROM deliveries WHERE receiver = $1"
GOING = "SELECT string_agg(DISTINCT url || ' ' || state, ', ') FROM deliveries WHERE receiver = $1"

Act = Callable[[Post, UUID], Awaitable[object]]


async def again(post: Post, receiver: UUID) -> object:
    del receiver
    return await replays.send_again(post.own.context.pool, post.merchant.merchant_id, utc_now())


async def again_to_it(post: Post, receiver: UUID) -> object:
    """Replay to this endpoint alone."""
    return await replays.send_again(
        post.own.context.pool, post.merchant.merchant_id, utc_now(), receiver=receiver
    )


async def publish(post: Post, receiver: UUID) -> object:
    del receiver
    return await post.publish()


async def receiver_of(post: Post, *, published: bool) -> UUID:
    """Return an endpoint with one event, which is published or waits to be published."""
    await post.merchant.create()
    await post.publish()
    receiver = UUID((await post.register(OLD))["id"])
    await post.merchant.create()
    if published:
        await post.publish()
    return receiver


@pytest.mark.parametrize("act", [publish, again, again_to_it])
async def test_events_wait_for_a_change_that_is_not_committed_and_go_to_the_new_address(
    post: Post, act: Act
) -> None:
    receiver = await receiver_of(post, published=act is not publish)
    async with holder(post.own.where) as other:
        await other.run(MOVE, receiver, NEW)
        acting = asyncio.ensure_future(act(post, receiver))
        await other.until_waits(acting)
    await acting
    assert await post.ask(COUNT, receiver) > 0
    assert await post.ask(GOING, receiver) == f"{NEW} pending"


@pytest.mark.parametrize("act", [publish, again, again_to_it])
async def test_events_wait_for_a_removal_that_is_not_committed_and_go_nowhere(post: Post, act: Act) -> None:
    receiver = await receiver_of(post, published=act is not publish)
    before = await post.ask(COUNT, receiver)
    await post.ask("UPDATE deliveries SET state = 'parked', try_at = NULL WHERE receiver = $1", receiver)
    async with holder(post.own.where) as other:
        await other.run(REMOVE, receiver)
        acting = asyncio.ensure_future(act(post, receiver))
        await other.until_waits(acting)
    await acting
    assert await post.ask(COUNT, receiver) == before
    assert await post.ask(f"{COUNT} AND state = 'pending'", receiver) == 0


async def publish_without_commit(post: Post, other: Holder) -> None:
    """Publish the waiting events in a transaction that the test commits later."""
    await other.run(events._PUBLISH, post.merchant.merchant_id, 100, utc_now(), events.OWN_ADDRESS)


async def test_a_change_moves_the_deliveries_that_are_published_at_the_same_moment(post: Post) -> None:
    receiver = await receiver_of(post, published=False)
    async with holder(post.own.where) as other:
        await publish_without_commit(post, other)
        changing = asyncio.ensure_future(
            change(post.own.context, post.merchant.merchant_id, receiver, Change(url=NEW))
        )
        await other.until_waits(changing)
    await changing
    assert await post.ask(GOING, receiver) == f"{NEW} pending"


async def test_a_removal_parks_the_deliveries_that_are_published_at_the_same_moment(post: Post) -> None:
    receiver = await receiver_of(post, published=False)
    async with holder(post.own.where) as other:
        await publish_without_commit(post, other)
        removing = asyncio.ensure_future(remove(post.own.context, post.merchant.merchant_id, receiver))
        await other.until_waits(removing)
    await removing
    assert await post.ask(GOING, receiver) == f"{OLD} parked"
