"""The connection is lost while a result is recorded. The worker does not know whether it was recorded, so it records
the result again."""

from __future__ import annotations

from datetime import timedelta

from cuota.core.webhook.delivery import Attempt
from cuota.db.webhook import deliveries
from cuota.db.webhook.deliveries import Result
from cuota.db.webhook.lanes import lanes_due
from cuota.flows.context import utc_now
from support.webhook.couriers import Post


async def test_a_failed_attempt_that_is_recorded_twice_counts_once(post: Post) -> None:
    await post.told("http://127.0.0.1:9/hook")
    await post.publish()
    pool, merchant_id = post.own.context.pool, post.merchant.merchant_id
    now = utc_now()
    lanes = await lanes_due(pool, now)
    claimed, _ = await deliveries.claim(pool, merchant_id, now, dict.fromkeys(lanes, 10), worker=7)
    attempt = Attempt(status=500, ms=3)
    failed = [Result(each, attempt, now, "pending", now + timedelta(seconds=30)) for each in claimed]
    assert failed
    for _ in range(2):
        await deliveries.record(pool, merchant_id, failed)
    assert await post.ask("SELECT array_agg((tries, failed)::text) FROM deliveries") == ["(1,1)"] * len(
        failed
    )
    assert await post.ask("SELECT count(*) FROM delivery_attempts") == len(failed)
