"""A delivered delivery is deleted with its last attempt. Deliveries that wait or are parked stay."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from cuota.db.privacy import retention
from cuota.work.retention import keep_terms
from support.db.locks import holder
from support.webhook.couriers import Post
from support.webhook.listeners import dead_port, hooked

COUNT = "SELECT count(*) FROM deliveries"


async def pause(post: Post, endpoint: str, *, paused: bool) -> None:
    answer = await post.merchant.http.patch(f"/webhook-endpoints/{endpoint}", json={"paused": paused})
    assert answer.status_code == 200, answer.text


async def test_a_delivered_delivery_is_deleted_with_its_last_attempt_and_not_before(post: Post) -> None:
    async with hooked(answers=[500]) as (hook, at):
        await post.register(at.url)
        await post.merchant.create()
        await post.deliver()
        await post.pass_days(1)
        await post.deliver()
        assert len(hook.got) == 2
        # The first attempt has reached its limit now, and the second one has not.
        await post.pass_days(89)
        assert await post.ask("SELECT array_agg(number) FROM delivery_attempts") == [2]
        assert await post.ask(COUNT) == 1
        await post.pass_days(1)
        assert await post.ask("SELECT count(*) FROM delivery_attempts") == 0
        assert await post.ask(COUNT) == 0


async def test_a_delivery_whose_attempts_are_deleted_in_several_batches_goes_with_the_last_one(
    post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "BATCH", 2)
    async with hooked() as (_, at):
        await post.register(at.url)
        await post.merchant.create()
        await post.deliver()
        (event,) = await post.events()
        for _ in range(2):
            assert await post.replay(event["id"]) == 1
            await post.deliver()
    post.own.service.clock.ahead += timedelta(days=91)
    await keep_terms(post.own.context)
    assert (await post.ask("SELECT count(*) FROM delivery_attempts"), await post.ask(COUNT)) == (1, 1)
    await keep_terms(post.own.context)
    assert (await post.ask("SELECT count(*) FROM delivery_attempts"), await post.ask(COUNT)) == (0, 0)


async def test_pending_and_parked_deliveries_stay(post: Post) -> None:
    with dead_port() as url:
        await post.register(url)
        removed = await post.register(f"{url}/removed")
        await post.merchant.create()
        await post.deliver()
        await post.merchant.http.delete(f"/webhook-endpoints/{removed['id']}")
    await post.pass_days(1000)
    assert await post.ask("SELECT count(*) FROM delivery_attempts") == 0
    assert await post.ask("SELECT array_agg(state ORDER BY state) FROM deliveries") == ["parked", "pending"]


async def test_a_delivery_that_is_locked_is_deleted_with_its_attempt_in_a_later_batch(post: Post) -> None:
    async with hooked() as (_, at):
        await post.register(at.url)
        await post.merchant.create()
        await post.merchant.create()
        await post.deliver()
    order_id = await post.ask("SELECT order_id FROM deliveries ORDER BY order_id LIMIT 1")
    lock = "SELECT FROM deliveries WHERE merchant_id = $1 AND order_id = $2 FOR UPDATE"
    async with holder(post.own.where) as other:
        await other.run(lock, post.merchant.merchant_id, order_id)
        await post.pass_days(91)
        assert await post.ask(COUNT) == 1
        assert await post.ask("SELECT count(*) FROM delivery_attempts") == 1
    await post.pass_days(0)
    assert await post.ask(COUNT) == 0
    assert await post.ask("SELECT count(*) FROM delivery_attempts") == 0


async def test_a_delivery_that_is_being_sent_again_is_not_deleted(post: Post) -> None:
    async with hooked() as (hook, at):
        await post.register(at.url)
        await post.merchant.create()
        await post.deliver()
        (event,) = await post.events()
        await post.pass_days(60)
        assert await post.replay(event["id"]) == 1
        await post.pass_days(40)
        assert await post.ask("SELECT state FROM deliveries") == "pending"
        assert await post.ask("SELECT count(*) FROM delivery_attempts") == 0
        await post.deliver()
        assert len(hook.got) == 2
        await post.pass_days(89)
        assert await post.ask(COUNT) == 1
        await post.pass_days(2)
        assert await post.ask(COUNT) == 0


async def test_an_endpoint_that_was_paused_all_the_time_loses_no_event(post: Post) -> None:
    async with hooked() as (hook, at):
        endpoint = await post.register(at.url)
        await pause(post, endpoint["id"], paused=True)
        await post.merchant.create()
        await post.deliver()
        await post.pass_days(200)
        await pause(post, endpoint["id"], paused=False)
        await post.deliver()
        assert hook.sequences[0] == 1


async def test_deliveries_whose_attempts_an_earlier_release_deleted_are_deleted_too(
    post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retention, "BATCH", 2)
    async with hooked() as (hook, at), hooked(status=500) as (_, bad_at):
        await post.register(at.url)
        await post.register(bad_at.url)
        for _ in range(5):
            await post.merchant.create()
        await post.deliver()
        await post.ask("DELETE FROM delivery_attempts")
        await post.pass_days(149)
        assert await post.ask(COUNT) == 10
        await post.pass_days(2)
        assert await post.ask("SELECT array_agg(state) FROM deliveries") == ["pending"] * 5
        # Each order is visited once.
        assert await keep_terms(post.own.context) == 0
        hook.got.clear()
        event = (await post.events())[0]["id"]
        assert not await post.complete(event)
        assert await post.replay(event) == 2
        await post.deliver()
        assert len(hook.got) == 1


async def test_a_delivery_that_is_sent_again_while_the_job_waits_for_it_is_not_deleted(post: Post) -> None:
    async with hooked() as (_, at):
        await post.register(at.url)
        await post.merchant.create()
        await post.deliver()
        await post.ask("DELETE FROM delivery_attempts")
        post.own.service.clock.ahead += timedelta(days=151)
        again = "UPDATE deliveries SET state = 'pending', try_at = created_at, settled_at = NULL WHERE merchant_id = $1"
        async with holder(post.own.where) as other:
            await other.run(again, post.merchant.merchant_id)
            keeping = asyncio.ensure_future(keep_terms(post.own.context))
            await other.until_waits(keeping)
        await keeping
        assert await post.ask("SELECT state FROM deliveries") == "pending"
