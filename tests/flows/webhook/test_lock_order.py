"""Every statement on several deliveries locks them in the order of their key. So no two of these statements deadlock."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from cuota.core.webhook.delivery import Attempt
from cuota.db.privacy import retention
from cuota.db.webhook import claims, deliveries, replays
from cuota.db.webhook.claims import Claim
from cuota.db.webhook.deliveries import Claimed, Result
from cuota.flows.context import utc_now
from cuota.flows.webhook.manage_endpoints import Change, change
from support.db.locks import holder
from support.webhook.couriers import Post

URL = "https://shop.example/hooks"
WORKER = 7
FIRST, SECOND = UUID(int=1), UUID(int=2)
# In the order of the feed, which differs from the order of the key.
ROWS = ((FIRST, 1), (SECOND, 1), (FIRST, 2))
FILL = """WITH fed AS (INSERT INTO feed (merchant_id, position, order_id, sequence) VALUES ($1, $2, $3, $4))
    INSERT INTO deliveries (merchant_id, order_id, sequence, receiver, position, url, host, state, tries, try_at, created_at,
        claimed_by) VALUES ($1, $3, $4, $5, $2, $6, 'shop.example', 'pending', $7, $8, $8, $9)"""
ARRIVED = (
    "UPDATE deliveries SET state = 'delivered', try_at = NULL, claimed_by = NULL, settled_at = created_at"
)
LOCK = "SELECT 1 FROM deliveries WHERE merchant_id = $1 AND order_id = $2 AND sequence = $3 FOR UPDATE NOWAIT"

Act = Callable[[Post, UUID], Awaitable[object]]


async def record(post: Post, receiver: UUID) -> object:
    """Record the results of the first two deliveries. The third is made due, because it waited for the first."""
    ids, now = (post.merchant.merchant_id,), utc_now()
    results = [
        Result(
            Claimed(*ids, order, sequence, receiver, URL, "shop.example", 1, 0), Attempt(200, 3), now, "delivered", None
        )
        for order, sequence in reversed(ROWS[:2])
    ]  # fmt: skip
    return await deliveries.record(post.own.context.pool, *ids, results)


async def let_go(post: Post, receiver: UUID) -> object:
    merchant_id = post.merchant.merchant_id
    given = [Claim(merchant_id, order, sequence, receiver, 1) for order, sequence in ROWS]
    return await claims.let_go(post.own.context.pool, merchant_id, WORKER, given, utc_now())


async def free(post: Post, receiver: UUID) -> object:
    del receiver
    return await claims.free(post.own.context.pool, post.merchant.merchant_id, [WORKER], utc_now())


async def replay(post: Post, receiver: UUID) -> object:
    del receiver
    # No delivery is claimed any more.
    later = utc_now() + timedelta(days=1)
    return await replays.send_again(post.own.context.pool, post.merchant.merchant_id, later)


async def park(post: Post, receiver: UUID) -> object:
    return await replays.park(post.own.context.pool, post.merchant.merchant_id, receiver, utc_now())


async def move(post: Post, receiver: UUID) -> object:
    asked = Change(url="https://shop.example/other")
    return await change(post.own.context, post.merchant.merchant_id, receiver, asked)


async def forget(post: Post, receiver: UUID) -> object:
    """Delete the deliveries, which arrived long ago and have no attempt."""
    del receiver
    later = utc_now() + timedelta(days=1)
    return await retention._forget_left(post.own.context.pool, post.merchant.merchant_id, later, UUID(int=3))


@pytest.mark.parametrize("act", [record, let_go, free, replay, park, move, forget])
async def test_deliveries_are_locked_in_the_order_of_their_key(post: Post, act: Act) -> None:
    receiver = UUID((await post.register(URL))["id"])
    await fill(post, receiver, waits=act is record)
    if act is forget:
        await post.ask(ARRIVED)
    async with holder(post.own.where) as other:
        await other.run(LOCK, post.merchant.merchant_id, FIRST, 2)
        acting = asyncio.ensure_future(act(post, receiver))
        await other.until_waits(acting)
        await other.run(LOCK, post.merchant.merchant_id, SECOND, 1)
    await acting
    if act is forget:
        assert await post.ask("SELECT count(*) FROM deliveries") == 0


async def fill(post: Post, receiver: UUID, *, waits: bool) -> None:
    """Add three claimed deliveries; if it `waits`, the last one is not claimed and waits for an earlier one of its order."""
    at = post.own.context.now()
    async with post.own.owner() as owner:
        for position, (order, sequence) in enumerate(ROWS, 1):
            free: tuple[Any, ...] = (0, at, None) if waits and sequence == 2 else (1, at, WORKER)
            await owner.execute(
                FILL, post.merchant.merchant_id, position, order, sequence, receiver, URL, *free
            )


async def test_two_replays_to_a_new_receiver_add_its_deliveries_in_the_order_of_their_key(post: Post) -> None:
    receiver = UUID((await post.register(URL))["id"])
    await fill(post, UUID(int=0), waits=False)
    merchant_id, now = post.merchant.merchant_id, utc_now()
    async with holder(post.own.where) as other:
        add = replays._ADDRESS.replace("f.position <= $5", "f.position <= $5 AND f.sequence = 2")
        await other.run(add, merchant_id, now, receiver, 0, 3)
        adding = asyncio.ensure_future(
            replays.send_again(post.own.context.pool, merchant_id, now, receiver=receiver)
        )
        await other.until_waits(adding)
        # The statement waits for the delivery that the other one has added, and has not added a later one yet.
        await other.run("SET LOCAL lock_timeout = '10ms'")
        await other.run(replays._ADDRESS, merchant_id, now, receiver, 1, 2)
    await adding
    assert await post.ask("SELECT count(*) FROM deliveries WHERE receiver = $1", receiver) == 3
