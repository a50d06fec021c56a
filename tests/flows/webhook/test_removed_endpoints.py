"""The rows of removed endpoints stay. However many there are, the deliveries of the others are not slower, and their number has a limit."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import pytest

from cuota.db.webhook import endpoints
from cuota.flows.webhook.manage_endpoints import MOST_ADDED
from support.api.bodies import assert_refused
from support.db.rows_read import rows_read
from support.webhook.couriers import Post
from support.webhook.listeners import hooked
from support.webhook.verifiers import verified

MANY = 2000
_REMOVED = """INSERT INTO webhook_endpoints (merchant_id, endpoint_id, url, state, secret, created_at)
    SELECT $1, gen_random_uuid(), 'https://shop.example/', 'deleted', '\\x00', $2 FROM generate_series(1, $3::integer)"""
BODY = {"url": "https://shop.example/hooks"}
DAY = timedelta(hours=24)


async def fill(post: Post, count: int, ago: timedelta) -> None:
    """Add endpoints that were registered this long ago, and removed."""
    async with post.own.owner() as owner:
        await owner.execute(_REMOVED, post.merchant.merchant_id, post.own.context.now() - ago, count)


@pytest.mark.plain_postgresql("the test reads the statistics of one PostgreSQL server")
async def test_the_secrets_of_deliveries_are_read_without_those_of_removed_endpoints(post: Post) -> None:
    made = await post.register(BODY["url"])
    await fill(post, MANY, DAY)
    values = post.merchant.merchant_id, [UUID(made["id"])]
    assert await rows_read(post.own, endpoints._SECRETS, *values) < 10


async def test_beside_many_removed_endpoints_an_event_arrives_with_its_endpoint_s_signature(
    post: Post,
) -> None:
    await fill(post, MANY, DAY)
    async with hooked() as (hook, listener):
        made = await post.register(listener.url)
        await post.merchant.create()
        await post.deliver()
    (came,) = hook.got
    assert verified(made["secret"], came)


async def test_who_registers_and_removes_endpoints_again_and_again_is_refused_at_a_limit(post: Post) -> None:
    await fill(post, MOST_ADDED - 1, timedelta(hours=1))
    await post.register(BODY["url"])
    answer = await post.merchant.http.post("/webhook-endpoints", json=BODY)
    assert_refused(answer, 400, "validation_failed")
    assert "1,000 endpoints were registered in the last 24 hours" in answer.json()["message"]


async def test_endpoints_of_earlier_days_do_not_count(post: Post) -> None:
    await fill(post, MOST_ADDED, DAY)
    await post.register(BODY["url"])


async def test_a_replay_does_not_lock_removed_endpoints(post: Post) -> None:
    async with hooked() as (hook, listener):
        await post.register(listener.url)
        await post.merchant.create()
        await post.deliver()
        await fill(post, MANY, DAY)
        (event,) = await post.events()
        assert await post.replay(event["id"]) == 1
        assert await post.ask("SELECT array_agg(DISTINCT state) FROM webhook_endpoints WHERE xmax <> 0") == [
            "active"
        ]
        await post.deliver()
    assert len(hook.got) == 2
