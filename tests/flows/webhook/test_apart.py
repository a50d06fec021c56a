"""Merchants do not wait for each other: whatever fails for one merchant, the webhooks of the others continue."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from uuid import UUID

import asyncpg
import pytest

from cuota.db.apart import MOST_PAUSE_SECONDS, PAUSES, LateMerchants
from cuota.flows.webhook.deliver_webhooks import publish_events
from cuota.flows.webhook.park_removed import park_removed
from cuota.work.webhooks import Webhooks
from support.db.locks import Holder, holder
from support.makers import Merchant
from support.webhook.couriers import Post
from support.webhook.listeners import hooked

LOCK_EVENTS = "SELECT FROM outbox WHERE merchant_id = $1 FOR UPDATE"
LOCK_DELIVERIES = "SELECT FROM deliveries WHERE merchant_id = $1 FOR UPDATE"
STATES = "SELECT array_agg(DISTINCT state) FROM deliveries WHERE merchant_id = $1"
# The order in which a job handles the merchants is not defined, so each of them fails once.
each_fails = pytest.mark.parametrize("fails", [0, 1])


@dataclass
class Seconds:
    """The clock by which the jobs pause. The test moves it."""

    now: float = 0.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture(autouse=True)
def seconds(post: Post) -> Seconds:
    """While this clock stands still, no failure takes time, so a merchant that failed is tried again in the next run."""
    clock = Seconds()
    for job in ("publishing", "parking"):
        post.own.context.late[job] = LateMerchants(clock)
    return clock


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


@each_fails
async def test_a_locked_merchant_delays_the_webhooks_of_the_others_only_in_the_first_run(
    post: Post, seconds: Seconds, fails: int
) -> None:
    failing, other = failing_and_other(post, fails)
    await failing.create()
    async with holder(post.own.where) as lock:
        await lock.run(LOCK_EVENTS, failing.merchant_id)
        publishing = asyncio.ensure_future(publish_events(post.own.context))
        await lock.until_waits(publishing)
        seconds.now += 2
        assert await lock.until_done(publishing) == 0
        await other.create()
        # Nothing ends a statement that waits for the lock here, so this run would wait as long as the lock is held.
        assert await until_waits_or_done(lock, asyncio.ensure_future(publish_events(post.own.context))) == 1
        assert len(await post.events(other)) == 1
    assert await post.publish() == 0
    seconds.now += 2 * PAUSES
    assert await post.publish() == 1
    assert len(await post.events(failing)) == 1


async def until_waits_or_done(lock: Holder, acting: asyncio.Future[int]) -> int:
    """Return the result of `acting`, which must not wait for a lock."""
    while not acting.done():
        assert not await lock.waiting(), "the run waits for a lock"
        await asyncio.wait([acting], timeout=0.01)
    return await acting


async def test_after_a_pause_the_late_merchants_are_tried_last_until_one_fails(seconds: Seconds) -> None:
    merchants, locked, tried = [UUID(int=number) for number in range(4)], set[UUID](), list[int]()
    late = LateMerchants(seconds)

    async def act(merchant_id: UUID) -> int:
        tried.append(merchant_id.int)
        if merchant_id in locked:
            seconds.now += 2
            raise asyncpg.LockNotAvailableError
        return 1

    async def run() -> tuple[int, list[int]]:
        tried.clear()
        return await late.each("work", merchants, act), list(tried)

    locked |= set(merchants[:3])
    assert await run() == (1, [0, 1, 2, 3])
    assert await run() == (1, [3])
    seconds.now += 2 * PAUSES
    # The first late merchant is still locked, so the others are not tried before the next pause is over.
    assert await run() == (1, [3, 0])
    assert await run() == (1, [3])
    locked.clear()
    seconds.now += 2 * PAUSES
    assert await run() == (4, [3, 1, 2, 0])
    assert await run() == (4, [0, 1, 2, 3])


async def test_no_pause_is_longer_than_ten_seconds(seconds: Seconds) -> None:
    late, merchant_id = LateMerchants(seconds), UUID(int=1)

    async def act(_: UUID) -> int:
        if seconds.now == 0:
            seconds.now += 60
            raise asyncpg.QueryCanceledError
        return 1

    assert await late.each("work", [merchant_id], act) == 0
    assert await late.each("work", [merchant_id], act) == 0
    seconds.now += MOST_PAUSE_SECONDS
    assert await late.each("work", [merchant_id], act) == 1
