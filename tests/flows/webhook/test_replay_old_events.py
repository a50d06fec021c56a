"""An old event whose deliveries were deleted can still be sent again, to the same receivers."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from cuota.db.privacy import retention
from cuota.db.verify.recalculate import verify
from support.db.locks import holder
from support.webhook.couriers import Post
from support.webhook.listeners import hooked

COUNT = "SELECT count(*) FROM deliveries"
KEPT = timedelta(days=90)


async def test_an_event_without_deliveries_is_sent_again_to_its_receivers_and_to_no_newer_one(
    post: Post,
) -> None:
    async with hooked() as (hook, at), hooked() as (own, own_at), hooked() as (newer, newer_at):
        kept = await post.register(at.url)
        removed = await post.register(f"{newer_at.url}/removed")
        await post.told(own_at.url)
        await post.deliver()
        (event,) = await post.events()
        await post.merchant.http.delete(f"/webhook-endpoints/{removed['id']}")
        await post.register(newer_at.url)
        await post.pass_days(91)
        assert await post.ask(COUNT) == 0
        for each in (hook, own, newer):
            each.got.clear()
        assert await post.replay(event["id"]) == 2
        await post.deliver()
        (again,), (called) = hook.got, own.got
        assert [each.event for each in (again, *called)] == [event, event]
        assert newer.got == []
        receivers = [each["endpointId"] for each in await post.deliveries(event["id"])]
        assert sorted(receivers, key=str) == sorted([None, kept["id"]], key=str)
        # The new deliveries are deleted in their turn, and the event can be sent again.
        await post.pass_days(91)
        assert await post.ask(COUNT) == 0
        assert await post.replay(event["id"]) == 2


async def test_the_events_of_an_order_are_sent_again_in_their_order(post: Post) -> None:
    async with hooked() as (hook, at):
        await post.register(at.url)
        order = await post.merchant.approved("100.00")
        await post.merchant.move(order, "capture", "10.00")
        await post.deliver()
        sent = list(hook.sequences)
        await post.pass_days(91)
        hook.got.clear()
        answer = await post.merchant.http.post("/events/replay", json={})
        # The time that has passed made more events, which are sent too.
        assert answer.json()["replayed"] >= len(sent)
        await post.deliver()
        assert hook.sequences[: len(sent)] == sent == [1, 2, 3]


async def test_an_event_that_was_deleted_for_one_receiver_and_parked_for_another_is_sent_to_both(
    post: Post,
) -> None:
    async with hooked() as (hook, at), hooked(status=500) as (bad, bad_at):
        await post.register(at.url)
        await post.register(bad_at.url)
        await post.merchant.create()
        await post.deliver()
        (event,) = await post.events()
        await post.ask(
            "UPDATE deliveries SET state = 'parked', try_at = NULL, settled_at = created_at WHERE state = 'pending'"
        )
        await post.pass_days(91)
        assert [each["state"] for each in await post.deliveries(event["id"])] == ["parked"]
        bad.status = 200
        for each in (hook, bad):
            each.got.clear()
        assert await post.replay(event["id"]) == 2
        await post.deliver()
        assert (len(hook.got), len(bad.got)) == (1, 1)


async def test_an_event_that_has_all_its_deliveries_gets_no_other_receiver(post: Post) -> None:
    async with hooked() as (hook, at), hooked() as (_, other_at):
        await post.merchant.create()
        await post.deliver()
        await post.register(at.url)
        await post.merchant.create()
        await post.deliver()
        await post.register(other_at.url)
        await post.pass_days(60)
        early, late = (each["id"] for each in await post.events())
        assert await post.replay(late) == 1
        assert await post.replay(early) == 0
        await post.deliver()
        assert len(hook.got) == 2
        # Deliveries of the merchant are deleted now, but this event never had one.
        await post.pass_days(91)
        assert await post.replay(early) == 0


async def test_an_event_before_a_longer_period_was_set_can_still_be_sent_again(post: Post) -> None:
    async with hooked() as (hook, at):
        await post.register(at.url)
        post.own.service.clock.ahead += timedelta(hours=2)
        await post.merchant.create()
        await post.deliver()
        (event,) = await post.events()
        now = post.own.context.now() + timedelta(days=2)
        await retention.forget_attempts(post.own.context.pool, now - timedelta(days=1))
        assert await post.ask(COUNT) == 0
        assert (await verify(post.own.context.pool)).disagreements == []
        assert await post.replay(event["id"]) == 1
        await post.deliver()
        assert len(hook.got) == 2


async def test_a_replay_that_waits_for_the_retention_job_sends_what_the_job_deletes(post: Post) -> None:
    async with hooked() as (hook, at):
        await post.register(at.url)
        await post.merchant.create()
        await post.deliver()
        (event,) = await post.events()
        post.own.service.clock.ahead += timedelta(days=91)
        before = post.own.context.now() - KEPT
        async with holder(post.own.where) as other:
            await other.run(retention._ATTEMPTS, post.merchant.merchant_id, before, retention.BATCH)
            replaying = asyncio.ensure_future(post.replay(event["id"]))
            await other.until_waits(replaying)
        assert await replaying == 1
        await post.deliver()
        assert len(hook.got) == 2
        assert await post.ask(COUNT) == 1


async def test_the_api_says_that_deliveries_of_an_old_event_may_be_missing(post: Post) -> None:
    async with hooked() as (_, at):
        await post.merchant.create()
        await post.deliver()
        (without,) = await post.events()
        await post.pass_days(91)
        # This event never had a delivery, and none of this merchant was deleted.
        assert await post.deliveries(without["id"]) == []
        assert await post.complete(without["id"])
        await post.register(at.url)
        order = await post.merchant.create()
        await post.deliver()
        old = next(each for each in await post.events() if each["orderId"] == order["orderId"])
        assert await post.complete(old["id"])
        await post.pass_days(91)
        order = await post.merchant.create()
        await post.deliver()
        new = next(each for each in await post.events() if each["orderId"] == order["orderId"])
        assert [await post.complete(each["id"]) for each in (old, new)] == [False, True]
        assert await post.deliveries(old["id"]) == []
