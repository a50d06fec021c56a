"""Events of one order arrive in order at each receiver: event n+1 waits until event n is delivered or has failed three
times."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import Counter, defaultdict

from cuota.db.webhook.deliveries import LOOK_AGAIN, LOOK_PAST
from cuota.flows.webhook.deliver_webhooks import Courier, publish_events
from cuota.rails.http import GuardedClient
from support.waiting import until
from support.webhook.couriers import Post
from support.webhook.listeners import Hook, dead_port, hooked, listening

STEPS = 6


async def captured(post: Post, orders: int) -> None:
    """Make orders with STEPS events each: created, approved, and captures."""

    async def one() -> None:
        order = await post.merchant.approved("100.00")
        for _ in range(STEPS - 2):
            assert (await post.merchant.move(order, "capture", "1.00")).status_code == 200

    for first in range(0, orders, 5):
        await asyncio.gather(*(one() for _ in range(min(5, orders - first))))


async def run(post: Post, courier: Courier, done: asyncio.Event) -> None:
    """Run a worker until the test stops it."""
    while not done.is_set():
        if not await publish_events(post.own.context) + await courier.send_due():
            await asyncio.sleep(0.02)


def assert_in_order(hook: Hook) -> None:
    """Assert that the first answers to an order's events were given in the order of the events. Repetitions may come
    later."""
    given: dict[str, list[int]] = defaultdict(list)
    for order, sequence, _ in hook.gave:
        given[order].append(sequence)
    for sequences in given.values():
        firsts = list(dict.fromkeys(sequences))
        assert firsts == list(range(1, len(firsts) + 1)), sequences


async def test_four_workers_together_deliver_every_event_exactly_once_and_in_order(
    post: Post,
) -> None:
    seeded = random.Random(7)
    hooks = [Hook(pause=lambda: seeded.random() / 50) for _ in range(3)]
    async with contextlib.AsyncExitStack() as stack:
        for hook in hooks:
            await post.register((await stack.enter_async_context(listening(hook.serve))).url)
        couriers = [await stack.enter_async_context(post.courier()) for _ in range(4)]
        done = asyncio.Event()
        workers = [asyncio.create_task(run(post, courier, done)) for courier in couriers]
        # The events are created while the workers run, as in reality.
        await captured(post, 20)
        await until(lambda: all(len(hook.got) >= 20 * STEPS for hook in hooks))
        await asyncio.sleep(0.5)  # time in which something could come twice
        done.set()
        await asyncio.gather(*workers)
        await asyncio.gather(*(courier.finish(60) for courier in couriers))
        for hook in hooks:
            came = Counter((each.event["orderId"], each.event["sequence"]) for each in hook.got)
            assert len(came) == 20 * STEPS
            assert set(came.values()) == {1}
            assert_in_order(hook)
        assert await post.ask("SELECT count(*) FROM deliveries WHERE state <> 'delivered'") == 0
        assert await post.ask("SELECT count(*) FROM delivery_attempts") == 3 * 20 * STEPS


async def test_with_failures_too_all_events_arrive_and_in_order(post: Post) -> None:
    seeded = random.Random(11)
    async with (
        hooked(pause=lambda: seeded.random() / 100) as (hook, listener),
        contextlib.AsyncExitStack() as stack,
    ):
        await post.register(listener.url)
        await captured(post, 5)
        # Half of the first attempts fail, and no event fails three times.
        hook.answers = [seeded.choice((200, 503)) for _ in range(30)]
        couriers = [await stack.enter_async_context(post.courier()) for _ in range(4)]
        for minutes in range(12):
            async with post.own.service.clock.moved(minutes=minutes):
                await publish_events(post.own.context)
                while sum(await asyncio.gather(*(courier.send_due() for courier in couriers))):
                    await asyncio.gather(*(courier.finish(20) for courier in couriers))
        succeeded = [(order, sequence) for order, sequence, status in hook.gave if status == 200]
        assert len(succeeded) == len(set(succeeded)) == 5 * STEPS
        assert_in_order(hook)


async def test_the_next_event_waits_for_three_failures_and_no_longer(post: Post) -> None:
    async with hooked(status=500) as (hook, listener):
        await post.register(listener.url)
        order = await post.merchant.approved("100.00")
        assert (await post.merchant.move(order, "capture", "1.00")).status_code == 200
        clock = post.own.service.clock
        tried = []
        for seconds in (0, 12, 12 + 70):
            async with clock.moved(seconds=seconds):
                await post.deliver()
            tried.append(hook.sequences)
        # The third failure of the first event releases the second event, at the same moment and once.
        assert tried == [[1], [1, 1], [1, 1, 1, 2]]
        hook.status = 200
        async with clock.moved(seconds=12 + 70 + 12):
            await post.deliver()
        # The second event is delivered, so the third is sent, while the first still waits five minutes for its retry.
        assert hook.sequences == [1, 1, 1, 2, 2, 3]
        async with clock.moved(minutes=10):
            await post.deliver()
        assert hook.sequences == [1, 1, 1, 2, 2, 3, 1]
        assert await post.ask("SELECT count(*) FROM deliveries WHERE state <> 'delivered'") == 0


async def test_a_third_try_that_is_under_way_still_holds_the_next_back(post: Post) -> None:
    async with (
        hooked(answers=[500, 500, 200]) as (hook, listener),
        post.courier() as other,
    ):
        await post.register(listener.url)
        await post.merchant.approved("100.00")
        clock = post.own.service.clock
        for seconds in (0, 12):
            async with clock.moved(seconds=seconds):
                await post.deliver()
        async with clock.moved(seconds=90), post.courier() as courier:
            held = [True]
            hook.holds = lambda number: bool(held)
            await courier.send_due()
            await until(lambda: len(hook.got) == 3)
            for _ in range(5):
                await other.send_due()
                await asyncio.sleep(0.05)
            assert hook.sequences == [1, 1, 1]
            held.clear()
            await courier.finish(20)
            await post.deliver()
        assert hook.gave == [(hook.gave[0][0], *each) for each in ((1, 500), (1, 500), (1, 200), (2, 200))]


async def test_an_acknowledgment_triggers_the_next_event_of_its_order_at_once_except_for_the_last_one(
    post: Post,
) -> None:
    async with hooked() as (hook, listener):
        await post.register(listener.url)
        await post.merchant.approved("100.00")
        await post.publish()
        called: list[list[int]] = []
        client = GuardedClient(loopback=True)
        courier = Courier(post.own.context, client, freed=lambda: called.append(hook.sequences))
        for _ in range(2):
            await courier.send_due()
            await courier.finish(20)
        await client.close()
        assert hook.sequences == [1, 2]
        assert called == [[1]]


async def test_after_an_acknowledgment_the_next_event_in_order_is_sent_first(post: Post) -> None:
    async with hooked() as (hook, listener):
        await post.register(listener.url)
        order = await post.merchant.approved("1000.00")
        # There are more deliveries than one look-up reads. All of them are postponed until the first is delivered, some
        # more than once.
        for first in range(0, 4 * LOOK_PAST, 8):
            moves = (post.merchant.move(order, "capture", "0.01", f"c{first + n}") for n in range(8))
            await asyncio.gather(*moves)
        await post.publish()
        async with post.courier() as courier:
            while await courier.send_due():
                pass
            await courier.finish(20)
            async with post.own.service.clock.moved(seconds=LOOK_AGAIN.total_seconds() + 1):
                before = len(hook.got)
                for sent in range(1, 5):
                    await courier.send_due()
                    await courier.finish(20)
                    assert hook.sequences == list(range(1, before + sent + 1))


async def test_one_receiver_s_failures_do_not_delay_other_receivers(post: Post) -> None:
    async with hooked() as (hook, listener):
        with dead_port() as dead:
            await post.register(dead)
            await post.register(listener.url)
            await captured(post, 1)
            await post.deliver()
            assert hook.sequences == list(range(1, STEPS + 1))
            failing = "SELECT array_agg(tries ORDER BY sequence) FROM deliveries WHERE state = 'pending'"
            assert await post.ask(failing) == [1, *[0] * (STEPS - 1)]


async def test_one_order_s_failures_do_not_delay_other_orders(post: Post) -> None:
    async with hooked(answers=[500]) as (hook, listener):
        await post.register(listener.url)
        await post.merchant.approved("100.00")
        await post.deliver()
        later = await post.merchant.approved("100.00")
        await post.deliver()
        assert [(came.event["orderId"] == later["orderId"], came.event["sequence"]) for came in hook.got] == [
            (False, 1),
            (True, 1),
            (True, 2),
        ]
