"""However much has been delivered, and however much waits for a dead receiver: what is due is found by the index."""

from __future__ import annotations

import json
import time
from typing import Any

from couriers import Post
from hook_listeners import dead_port, hooked

from cuota.db import deliveries, events
from cuota.db.deliveries import LEASE, LOOK_AGAIN, Lane

# Orders 1 to $3, two events each, to one receiver; a copy of rows as publishing writes them.
FILL = """INSERT INTO deliveries (merchant_id, order_id, sequence, receiver, position, url, host, state, try_at, created_at)
    SELECT $1, md5($4 || (n / 2))::uuid, 1 + n % 2, $2::uuid, n + 1, $5, split_part($5, '/', 3), $6,
        CASE WHEN $6 = 'pending' THEN now() - interval '1 hour' END, now() FROM generate_series(0, $3::integer - 1) n"""


async def fill(post: Post, receiver: str, url: str, count: int, state: str) -> None:
    async with post.own.owner() as owner:
        await owner.execute(FILL, post.merchant.merchant_id, receiver, count, url, url, state)


def most_rows(node: dict[str, Any]) -> int:
    """How many rows the busiest step of a plan has had in hand."""
    dropped = sum(value for name, value in node.items() if name.startswith("Rows Removed"))
    own = (node["Actual Rows"] + dropped) * node["Actual Loops"]
    return max([int(own), *(most_rows(child) for child in node.get("Plans", []))])


async def rows_read(post: Post, sql: str, *values: object) -> int:
    """As the workers' sessions run it: prepared, when the planner has settled for a plan that fits all values."""
    async with post.own.owner() as owner:
        await owner.execute("SET plan_cache_mode = force_generic_plan")
        transaction = owner.transaction()
        await transaction.start()
        (explained,) = json.loads(await owner.fetchval(f"EXPLAIN (ANALYZE, FORMAT json) {sql}", *values))
        await transaction.rollback()
    return most_rows(explained["Plan"])


async def one_result(post: Post, receiver: str) -> tuple[object, ...]:
    """The values with which one failed try of the backlog is recorded."""
    async with post.own.owner() as owner:
        row = await owner.fetchrow(
            "SELECT order_id, sequence, receiver, tries FROM deliveries WHERE receiver = $1 LIMIT 1", receiver
        )
    at = post.own.context.now()
    values = (*row, at, "parked", None, None, 1, "dead", b"")
    return post.merchant.merchant_id, *([value] for value in values)


async def test_what_is_due_is_found_by_the_index_whatever_has_piled_up(post: Post) -> None:
    async with hooked() as (hook, listener):
        with dead_port() as dead:
            gone, lives = await post.register(dead), await post.register(listener.url)
            await fill(post, lives["id"], listener.url, 100_000, "delivered")
            await fill(post, gone["id"], dead, 50_000, "pending")
            await post.told(listener.url)
            await post.publish()
            context = post.own.context
            merchant_id, now = post.merchant.merchant_id, context.now()
            lanes = await deliveries.lanes_due(context.pool, now)
            assert len(lanes) == 3
            claim = (
                deliveries._CLAIM, merchant_id, now, now + LEASE, [lane.receiver for lane in lanes],
                [lane.host for lane in lanes], [16] * 3, LOOK_AGAIN, None,
            )  # fmt: skip
            record = (deliveries._RECORD, *await one_result(post, gone["id"]))
            # Neither without statistics, as after a sudden burst, nor with them.
            for statistics in ("SELECT 1", "ANALYZE deliveries"):
                await post.ask(statistics)
                assert await rows_read(post, deliveries._LANES, now, events.OWN_ADDRESS) < 100
                assert await rows_read(post, *claim) < 500
                assert await rows_read(post, *record) < 100
            began = time.monotonic()
            async with post.courier() as courier:
                for _ in range(10):
                    await courier.send_due()
                await courier.finish(5)
            # The dead one's tries are recorded with the others; a statement that read its backlog would take seconds.
            assert time.monotonic() - began < 4
            assert len(hook.got) == 2


async def test_a_claim_takes_as_many_as_there_is_room_for_and_none_twice(post: Post) -> None:
    with dead_port() as dead:
        gone = await post.register(dead)
        await fill(post, gone["id"], dead, 400, "pending")
        context, taken = post.own.context, []
        lane = Lane(
            post.merchant.merchant_id, *(await deliveries.lanes_due(context.pool, context.now()))[0][1:]
        )
        for _ in range(30):
            claimed, _ = await deliveries.claim(context.pool, lane.merchant_id, context.now(), {lane: 16})
            assert len(claimed) <= 16
            taken += [(item.order_id, item.sequence) for item in claimed]
        assert len(taken) == len(set(taken)) == 200
        assert {sequence for _, sequence in taken} == {1}
