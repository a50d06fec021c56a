"""Another worker takes over a dead worker's deliveries within seconds. If the first worker is alive after all, events
still arrive in order and records are right."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from cuota.db.webhook import deliveries
from cuota.db.webhook.lanes import lanes_due
from cuota.db.workers import Worker, unheld
from cuota.flows.webhook import free_claims
from cuota.flows.webhook.deliver_webhooks import Courier
from cuota.flows.webhook.free_claims import DEAD_SECONDS, Heir
from cuota.rails.http import GuardedClient
from support.waiting import until
from support.webhook.couriers import Post
from support.webhook.listeners import Hook, hooked

TRIES = "SELECT array_agg(tries ORDER BY sequence) FROM deliveries"
HOLDER = """SELECT max(pid) FROM pg_locks
    WHERE locktype = 'advisory' AND (classid::bigint << 32 | objid::bigint) = $1"""


@dataclass
class Hand:
    """A separate worker in this process: its name, its lock and its courier, which can end independently."""

    worker: Worker
    life: contextlib.AsyncExitStack
    courier: Courier

    async def lose_session(self) -> None:
        """Simulate a machine without a network: the lock is released, but the worker still runs."""
        await self.life.aclose()


async def locked(post: Post, worker: Worker) -> None:
    """Wait until the worker's lock is held."""
    assert worker.name is not None
    deadline = time.monotonic() + 60
    while await unheld(post.own.context.pool, [worker.name]):
        assert time.monotonic() < deadline
        await asyncio.sleep(0.02)


@contextlib.asynccontextmanager
async def hand(post: Post) -> AsyncIterator[Hand]:
    worker, client = Worker(post.own.context.pool), GuardedClient(loopback=True)
    async with contextlib.AsyncExitStack() as life:
        await life.enter_async_context(worker.living())
        await locked(post, worker)
        made = Hand(worker, life, Courier(post.own.context, client, worker))
        yield made
        await made.courier.finish(20)
        await client.close()


async def deliver(post: Post, heir: Heir, done: asyncio.Event) -> None:
    """Run another worker until the test stops it."""
    async with post.courier() as courier:
        while not done.is_set():
            if not await heir.free_claims(post.own.context) + await courier.send_due():
                await asyncio.sleep(0.05)


@contextlib.asynccontextmanager
async def another(post: Post, heir: Heir | None = None) -> AsyncIterator[None]:
    done = asyncio.Event()
    task = asyncio.create_task(deliver(post, heir or Heir(), done))
    try:
        yield
    finally:
        done.set()
        await task


async def told_events(post: Post, url: str) -> None:
    """Make one order with three waiting events: created, approved, captured."""
    await post.register(url)
    order = await post.merchant.approved("100.00")
    assert (await post.merchant.move(order, "capture", "1.00")).status_code == 200
    await post.publish()


async def all_delivered(post: Post, hook: Hook, seconds: float) -> None:
    delivered = "SELECT bool_and(state = 'delivered') FROM deliveries"
    deadline = time.monotonic() + seconds
    while not await post.ask(delivered):
        assert time.monotonic() < deadline, hook.sequences
        await asyncio.sleep(0.05)


async def test_a_dead_worker_s_deliveries_are_made_within_seconds_and_stay_in_order_even_if_the_worker_is_alive(
    post: Post,
) -> None:
    async with hooked() as (hook, listener), hand(post) as slow:
        hook.holds = lambda number: number == 1 and len(hook.gave) < 3
        await told_events(post, listener.url)
        await slow.courier.send_due()
        await until(lambda: hook.got)
        await slow.lose_session()
        async with another(post):
            await all_delivered(post, hook, 60)
            # The first event came twice, which a receiver must expect. No other event came before it.
            assert hook.sequences == [1, 1, 2, 3]
            await slow.courier.finish(20)
        # The slow answer arrives after another worker has delivered the event, so its record comes too late and changes
        # nothing.
        assert len(hook.gave) == 4
        assert await post.ask(TRIES) == [2, 1, 1]
        assert await post.ask("SELECT count(*) FROM delivery_attempts") == 3


async def test_an_answer_that_arrives_before_another_worker_has_taken_over_still_counts(post: Post) -> None:
    async with hooked(pause=lambda: 0.5) as (hook, listener), hand(post) as slow:
        await told_events(post, listener.url)
        await slow.courier.send_due()
        await until(lambda: hook.got)
        await slow.lose_session()
        heir = Heir()
        assert await heir.free_claims(post.own.context) == 0
        await slow.courier.finish(20)
        async with another(post):
            await all_delivered(post, hook, 60)
        assert hook.sequences == [1, 2, 3]


async def test_no_other_worker_takes_over_a_living_worker_s_delivery_however_long_it_takes(
    post: Post,
) -> None:
    async with hooked(pause=lambda: DEAD_SECONDS + 2.0) as (hook, listener), hand(post) as living:
        await told_events(post, listener.url)
        await living.courier.send_due()
        async with another(post), another(post, Heir(living.worker, living.courier.under_way)):
            await living.courier.finish(20)
            assert hook.sequences[0] == 1
            assert hook.sequences.count(1) == 1


async def test_a_worker_whose_session_was_cut_takes_its_lock_again_under_the_same_name(post: Post) -> None:
    async with hand(post) as cut:
        name = cut.worker.name
        before = await post.ask(HOLDER, name)
        await post.ask("SELECT pg_terminate_backend($1::integer)", before)
        deadline = time.monotonic() + 60
        while await post.ask(HOLDER, name) in {None, before}:
            assert time.monotonic() < deadline
            await asyncio.sleep(0.02)
        assert cut.worker.name == name


async def test_a_living_worker_releases_its_own_claim_whose_answer_was_lost(
    post: Post,
) -> None:
    async with hooked() as (hook, listener), hand(post) as living:
        await told_events(post, listener.url)
        context, name = post.own.context, living.worker.name
        lanes = await lanes_due(context.pool, context.now())
        # The claim is committed in the database, but the session with its answer was lost.
        claimed, _ = await deliveries.claim(
            context.pool, lanes[0].merchant_id, context.now(), dict.fromkeys(lanes, 4), name
        )
        assert [item.sequence for item in claimed] == [1]
        async with another(post, Heir(living.worker, living.courier.under_way)):
            await all_delivered(post, hook, 60)
        assert hook.sequences == [1, 2, 3]
        assert await post.ask(TRIES) == [2, 1, 1]


async def test_a_try_that_failed_waits_for_its_time_although_its_worker_is_dead(
    post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The time for the next try, after ten seconds, must be far away.
    monkeypatch.setattr(free_claims, "DEAD_SECONDS", 0.1)
    async with hooked(answers=[500]) as (hook, listener), hand(post) as dying:
        await told_events(post, listener.url)
        await dying.courier.send_due()
        await dying.courier.finish(20)
        await dying.lose_session()
        heir = Heir()
        assert await heir.free_claims(post.own.context) == 0
        await asyncio.sleep(0.2)
        assert await heir.free_claims(post.own.context) == 0
        await post.deliver()
        assert hook.sequences == [1]
