"""A delivery with many attempts: each result is recorded, whatever retention has deleted."""

from __future__ import annotations

from datetime import timedelta

from cuota.work.retention import keep_terms
from support.webhook.couriers import Post
from support.webhook.listeners import hooked


async def replayed(post: Post, event: str) -> None:
    answer = await post.merchant.http.post("/events/replay", json={"event": event})
    assert answer.status_code == 200, answer.text
    await post.deliver()


async def test_an_event_that_is_sent_again_after_its_first_attempt_was_deleted_arrives_once(
    post: Post,
) -> None:
    async with hooked() as (hook, at):
        await post.register(at.url)
        await post.merchant.create()
        await post.deliver()
        (event,) = await post.events()
        post.own.service.clock.ahead += timedelta(days=20)
        await replayed(post, event["id"])
        # Now the first attempt is older than retention keeps attempts, and the second is not.
        post.own.service.clock.ahead += timedelta(days=71)
        while await keep_terms(post.own.context):
            pass
        assert await post.ask("SELECT array_agg(number) FROM delivery_attempts") == [2]
        await replayed(post, event["id"])
        post.own.service.clock.ahead += timedelta(minutes=1)
        await post.deliver()
        assert len(hook.got) == 3
        assert await post.ask("SELECT state FROM deliveries") == "delivered"
        assert await post.ask("SELECT array_agg(number ORDER BY number) FROM delivery_attempts") == [2, 3]


async def test_a_delivery_that_was_tried_as_often_as_the_column_can_count_stops_no_other_delivery(
    post: Post,
) -> None:
    async with hooked() as (hook, at):
        await post.register(at.url)
        await post.merchant.create()
        await post.merchant.create()
        await post.publish()
        first = "SELECT order_id FROM deliveries ORDER BY order_id LIMIT 1"
        await post.ask(f"UPDATE deliveries SET tries = 32767, failed = 9 WHERE order_id = ({first})")
        await post.deliver()
        assert len(hook.got) == 2
        assert await post.ask("SELECT count(*) FROM deliveries WHERE state = 'delivered'") == 2
