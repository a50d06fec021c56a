"""Merchants do not wait for each other: whatever fails for one merchant, the webhooks of the others continue."""

from __future__ import annotations

import asyncio

import pytest

from cuota.flows.webhook.deliver_webhooks import publish_events
from cuota.flows.webhook.park_removed import park_removed
from cuota.work.webhooks import Webhooks
from support.db.locks import holder
from support.makers import Merchant
from support.webhook.couriers import Post
from support.webhook.listeners import hooked

LOCK_EVENTS = "SELECT FROM outbox WHERE merchant_id = $1 FOR UPDATE"
LOCK_DELIVERIES = "SELECT FROM deliveries WHERE merchant_id = $1 FOR UPDATE"
STATES = "SELECT array_agg(DISTINCT state) FROM deliveries WHERE merchant_id = $1"
# The order in which a job handles the merchants is not defined, so each of them fails once.
each_fails = pytest.mark.parametrize("fails", [0, 1])


@pytest.fixture(autouse=True)
def expected_log(caplog: pytest.LogCaptureFixture) -> None:
    """The merchant that fails is logged."""
    caplog.set_level("CRITICAL", "cuota.work")


def failing_and_other(post: Post, fails: int) -> tuple[Merchant, Merchant]:
    both = post.own.merchant, post.own.auto_merchant
    return both[fails], both[1 - fails]


@each_fails
async def test_the_events_of_a_merchant_are_published_although_those_of_another_cannot_be(
    post: Post, fails: int
) -> None:
    failing, other = failing_and_other(post, fails)
    for merchant in (failing, other):
        await merchant.create()
    async with holder(post.own.where) as lock:
        await lock.run(LOCK_EVENTS, failing.merchant_id)
        publishing = asyncio.ensure_future(publish_events(post.own.context))
        assert await lock.until_done(publishing) == 1
        assert len(await post.events(other)) == 1
    assert await post.publish() == 1
    assert len(await post.events(failing)) == 1


async def test_retries_are_sent_although_no_event_can_be_published(post: Post) -> None:
    async with hooked() as (hook, at):
        await post.told(at.url)
        hook.status = 500
        await post.deliver()
        hook.status = 200
        await post.ask("UPDATE deliveries SET try_at = created_at")
        webhooks = Webhooks(post.own.context)
        async with holder(post.own.where) as lock:
            await lock.run("LOCK TABLE outbox")
            assert await lock.until_done(asyncio.ensure_future(webhooks.run(post.own.context))) == 1
        await webhooks.close()
        assert len(hook.got) == 2
        assert await post.ask(STATES, post.merchant.merchant_id) == ["delivered"]


@each_fails
async def test_the_deliveries_of_a_removed_endpoint_are_parked_although_those_of_another_merchant_cannot_be(
    post: Post, fails: int
) -> None:
    failing, other = failing_and_other(post, fails)
    for merchant in (failing, other):
        await post.register("http://127.0.0.1:9/hook", merchant)
        await merchant.create()
    await post.publish()
    # A removal parks a short queue by itself. Here both queues count as too long for that.
    await post.ask("UPDATE webhook_endpoints SET state = 'deleted'")
    async with holder(post.own.where) as lock:
        await lock.run(LOCK_DELIVERIES, failing.merchant_id)
        assert await lock.until_done(asyncio.ensure_future(park_removed(post.own.context))) == 1
        assert await post.ask(STATES, other.merchant_id) == ["parked"]
    assert await park_removed(post.own.context) == 1
