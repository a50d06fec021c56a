"""All parked deliveries are sent again, also if two people ask for it at the same moment."""

from __future__ import annotations

import asyncio

import pytest

from cuota.db.webhook import replays
from cuota.flows.desk.record import OPERATOR, Cause
from cuota.flows.webhook.replay_webhooks import replay_parked
from support.db.locks import holder
from support.webhook.couriers import Post

PARKED = "SELECT count(*) FROM deliveries WHERE state = 'parked'"


async def test_a_second_click_that_waits_for_the_first_is_not_told_that_nothing_is_parked(
    post: Post, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replays, "POSITIONS_AT_ONCE", 1)
    await post.register("http://127.0.0.1:9/")
    for _ in range(3):
        await post.merchant.create()
    await post.publish()
    context, merchant_id = post.own.context, post.merchant.merchant_id
    at = context.now()
    await post.ask("UPDATE deliveries SET state = 'parked', try_at = NULL, settled_at = $1", at)
    async with holder(post.own.where) as other:
        locks = "SELECT 1 FROM deliveries WHERE merchant_id = $1 ORDER BY position FOR UPDATE"
        await other.run(locks, merchant_id)
        clicks = [
            asyncio.ensure_future(replay_parked(context, merchant_id, Cause(OPERATOR))) for _ in range(2)
        ]
        await other.until_waits(asyncio.gather(*clicks), 2)
    assert all(await asyncio.gather(*clicks))
    assert await post.ask(PARKED) == 0
