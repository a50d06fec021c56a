"""A merchant may have very many queues, because each order may name its own callback URL, or very many events of one order.

The webhooks of the others go on.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

import pytest

from cuota.core.webhook.delivery import Attempt
from cuota.db.webhook import deliveries
from cuota.db.webhook.deliveries import LOOK_AGAIN
from cuota.db.webhook.events import OWN_ADDRESS
from cuota.db.webhook.lanes import _LANES, MOST_LANES, Lane, lanes_due
from cuota.flows.webhook.limit_receivers import MOST_DOUBTFUL, MOST_UNDER_WAY, ReceiverLimits
from cuota.flows.webhook.pace_webhooks import HurriedPace
from support.db.failing import failing
from support.db.rows_read import rows_read
from support.makers import Merchant
from support.webhook.couriers import Post
from support.webhook.listeners import hooked

# Each queue has one delivery, which is due.
FILL = """INSERT INTO deliveries (merchant_id, order_id, sequence, receiver, position, url, host, state, try_at, created_at)
    SELECT $1, gen_random_uuid(), 1, $2, n, 'https://shop' || n || '.example/', 'shop' || n || '.example', 'pending',
        now() - interval '1 hour', now() FROM generate_series(1, $3::integer) n"""
FEED = "INSERT INTO feeds (merchant_id, last_position) VALUES ($1, 0) ON CONFLICT DO NOTHING"
MANY = 3 * MOST_LANES + 7
# The rows that a search reads of each queue.
EACH = 3
PROMPT = Attempt(200, 1)
EVENTS = 100
ONE_ORDER = "UPDATE deliveries SET order_id = $1, sequence = position, host = 'shop.example'"
HOSTILE, OTHER = UUID(int=1), UUID(int=2)


async def fill(post: Post, merchant: Merchant, count: int) -> None:
    async with post.own.owner() as owner:
        # A merchant with deliveries has a feed. On a Citus cluster, the search begins with the feeds.
        await owner.execute(FEED, merchant.merchant_id)
        await owner.execute(FILL, merchant.merchant_id, OWN_ADDRESS, count)


def own_lanes(merchant_id: UUID, count: int) -> list[Lane]:
    return [Lane(merchant_id, OWN_ADDRESS, f"shop{number}.example") for number in range(count)]


@pytest.mark.plain_postgresql("the test reads the statistics of one PostgreSQL server")
async def test_a_search_reads_a_limited_number_of_queues_of_each_merchant(post: Post) -> None:
    await fill(post, post.merchant, MANY)
    values = post.own.context.now(), OWN_ADDRESS, MOST_LANES, [], [], []
    assert MOST_LANES < await rows_read(post.own, _LANES, *values) < EACH * MOST_LANES


async def test_each_search_finds_the_queues_of_the_other_merchants(post: Post) -> None:
    other = post.own.auto_merchant
    await fill(post, post.merchant, MANY)
    await fill(post, other, 2)
    context = post.own.context
    for _ in range(5):
        found = await lanes_due(context.pool, context.now())
        assert len([lane for lane in found if lane.merchant_id == other.merchant_id]) == 2
        assert len(found) <= MOST_LANES + 2


async def test_one_search_after_the_other_finds_all_queues_and_then_begins_again(post: Post) -> None:
    await fill(post, post.merchant, MANY)
    context = post.own.context
    for _ in range(2):
        found = [lane for _ in range(4) for lane in await lanes_due(context.pool, context.now())]
        assert len(found) == len(set(found)) == MANY


async def test_a_merchant_with_many_silent_receivers_leaves_room_for_the_receivers_of_the_others() -> None:
    limits = ReceiverLimits()
    while given := limits.room(own_lanes(HOSTILE, MANY)):
        for lane, room in given.items():
            for _ in range(room):
                limits.begin(lane)
    assert sum(limits.room(own_lanes(OTHER, MANY)).values()) == MOST_DOUBTFUL // 4


async def test_many_queues_share_the_places_although_each_may_have_only_one_delivery() -> None:
    assert len(ReceiverLimits().room(own_lanes(HOSTILE, MANY))) == MOST_DOUBTFUL // 2
    assert len(ReceiverLimits(part=HurriedPace.part).room(own_lanes(HOSTILE, MANY))) == MOST_DOUBTFUL


async def test_a_prompt_receiver_beside_many_silent_ones_of_its_merchant_may_start_as_many_as_alone() -> None:
    limits = ReceiverLimits(lambda _at_once, _attempt: 16)
    lanes = own_lanes(HOSTILE, MANY)
    limits.learn(lanes[-1], PROMPT)
    assert limits.room(lanes)[lanes[-1]] == limits.room(lanes[-1:])[lanes[-1]] == 16


async def test_places_that_busy_queues_do_not_take_go_to_the_queues_behind_them() -> None:
    limits = ReceiverLimits()
    busy, *others = own_lanes(HOSTILE, 26)
    for _ in range(4):
        limits.begin(busy)
    # A merchant may use half of the places. 96 are left for 25 queues, each of which may use four.
    assert sum(limits.room([busy, *others]).values()) == MOST_DOUBTFUL // 2 - 4


async def test_while_the_clock_moves_one_merchant_may_use_all_places() -> None:
    limits = ReceiverLimits(part=HurriedPace.part)
    assert sum(limits.room(own_lanes(HOSTILE, MANY)).values()) == MOST_DOUBTFUL


async def test_a_merchant_with_many_prompt_receivers_leaves_room_for_the_receivers_of_the_others() -> None:
    limits = ReceiverLimits(lambda _at_once, _attempt: 16)
    lanes = own_lanes(HOSTILE, MANY)
    for lane in lanes:
        limits.learn(lane, PROMPT)
    while given := limits.room(lanes):
        for lane, room in given.items():
            for _ in range(room):
                limits.begin(lane)
    assert sum(limits.room(own_lanes(OTHER, MANY)).values()) == MOST_UNDER_WAY // 4


@pytest.mark.parametrize("fails", [0, 1])
async def test_webhooks_are_sent_although_those_of_another_merchant_cannot_be_claimed(
    post: Post, fails: int, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("CRITICAL", "cuota.work")
    both = post.own.merchant, post.own.auto_merchant
    async with hooked() as (hook, listener), post.courier() as courier:
        for merchant in both:
            await post.register(listener.url, merchant)
            await merchant.create()
        await post.publish()
        bad = f"NEW.merchant_id = '{both[fails].merchant_id}'"
        async with failing(post.own, "deliveries", "UPDATE", bad):
            assert await courier.send_due() == 1
            await courier.finish(5)
        assert len(hook.got) == 1


async def test_of_the_events_behind_one_that_is_being_sent_few_are_looked_at_again(post: Post) -> None:
    merchant_id, now = post.merchant.merchant_id, post.own.context.now()
    await fill(post, post.merchant, EVENTS)
    async with post.own.owner() as owner:
        await owner.execute(ONE_ORDER, UUID(int=1))
    lane, pool = Lane(merchant_id, OWN_ADDRESS, "shop.example"), post.own.context.pool
    assert len((await deliveries.claim(pool, merchant_id, now, {lane: 1}))[0]) == 1
    while (await deliveries.claim(pool, merchant_id, now, {lane: 1}))[1]:
        pass
    # The next event is looked at again after two seconds, and the last ones after a minute.
    assert await due_at(post, now + LOOK_AGAIN) == 1
    assert await due_at(post, now + timedelta(minutes=1)) == EVENTS


async def due_at(post: Post, at: datetime) -> int:
    async with post.own.owner() as owner:
        return int(await owner.fetchval("SELECT count(*) FROM deliveries WHERE try_at <= $1", at))
