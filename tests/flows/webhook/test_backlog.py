"""An index finds due deliveries, however many deliveries are done or wait for a dead receiver."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

import pytest

from cuota.db.pool import SESSION
from cuota.db.webhook import deliveries, events, replays
from cuota.db.webhook.deliveries import LEASE, LOOK_AGAIN, LOOK_PAST
from cuota.db.webhook.lanes import _LANES, MOST_LANES, Lane, lanes_due
from support.webhook.couriers import Post
from support.webhook.listeners import dead_port, hooked

# Insert the rows that publishing writes: orders 1 to $3 with two events each, to one receiver.
FILL = """INSERT INTO deliveries (merchant_id, order_id, sequence, receiver, position, url, host, state, try_at, created_at)
    SELECT $1, md5($4 || (n / 2))::uuid, 1 + n % 2, $2::uuid, n + 1, $5, split_part($5, '/', 3), $6,
        CASE WHEN $6 = 'pending' THEN now() - interval '1 hour' END, now() FROM generate_series(0, $3::integer - 1) n"""


async def fill(post: Post, receiver: str, url: str, count: int, state: str) -> None:
    async with post.own.owner() as owner:
        await owner.execute(FILL, post.merchant.merchant_id, receiver, count, url, url, state)


def most_rows(node: dict[str, Any]) -> int:
    """Return the number of rows that the busiest step of a plan processed."""
    dropped = sum(value for name, value in node.items() if name.startswith("Rows Removed"))
    own = (node["Actual Rows"] + dropped) * node["Actual Loops"]
    return max([int(own), *(most_rows(child) for child in node.get("Plans", []))])


async def rows_read(post: Post, sql: str, *values: object) -> int:
    """Prepare the statement as the workers' sessions do, with a generic plan that fits all values."""
    async with post.own.owner() as owner:
        for name, value in SESSION.items():
            await owner.fetchval("SELECT set_config($1, $2, false)", name, value)
        transaction = owner.transaction()
        await transaction.start()
        kinds = [kind.name for kind in (await owner.prepare(sql)).get_parameters()]
        await owner.execute(f"PREPARE asked AS {sql}")
        literals = [
            await owner.fetchval(f"SELECT quote_nullable($1::{kind}::text)", value)
            for kind, value in zip(kinds, values, strict=True)
        ]
        asked = f"EXECUTE asked({', '.join(literals)})" if literals else "EXECUTE asked"
        (explained,) = json.loads(await owner.fetchval(f"EXPLAIN (ANALYZE, FORMAT json) {asked}"))
        await transaction.rollback()
    return most_rows(explained["Plan"])


def claiming(post: Post, lanes: list[Lane], now: datetime, room: int) -> tuple[Any, ...]:
    """Return the statement that claims this many deliveries of each queue, and its values."""
    receivers, hosts = [lane.receiver for lane in lanes], [lane.host for lane in lanes]
    asked = (receivers, hosts, [room] * len(lanes), LOOK_AGAIN, None)
    return (deliveries._CLAIM, post.merchant.merchant_id, now, now + LEASE, *asked)


async def some_results(post: Post, receiver: str, count: int) -> tuple[object, ...]:
    """Return the values with which failed attempts of the backlog are recorded."""
    async with post.own.owner() as owner:
        sql = "SELECT order_id, sequence, receiver, tries FROM deliveries WHERE receiver = $1 LIMIT $2"
        rows = await owner.fetch(sql, receiver, count)
    at = post.own.context.now()
    each = [(*row, at, "parked", None, None, 1, "dead", b"") for row in rows]
    return post.merchant.merchant_id, *(list(column) for column in zip(*each, strict=True))


async def test_an_index_finds_due_deliveries_whatever_the_backlog(post: Post) -> None:
    async with hooked() as (hook, listener):
        with dead_port() as dead:
            gone, lives = await post.register(dead), await post.register(listener.url)
            await fill(post, lives["id"], listener.url, 100_000, "delivered")
            await fill(post, gone["id"], dead, 50_000, "pending")
            await post.told(listener.url)
            await post.publish()
            context = post.own.context
            now = context.now()
            lanes = await lanes_due(context.pool, now)
            assert len(lanes) == 3
            claim = claiming(post, lanes, now, 16)
            record = (deliveries._RECORD, *await some_results(post, gone["id"], 1))
            # Check without statistics, as after a sudden burst, and with statistics.
            for statistics in ("SELECT 1", "ANALYZE deliveries"):
                await post.ask(statistics)
                assert await rows_read(post, _LANES, now, events.OWN_ADDRESS, MOST_LANES, [], [], []) < 100
                assert await rows_read(post, *claim) < 500
                assert await rows_read(post, *record) < 100
            async with post.courier() as courier:
                for _ in range(10):
                    await courier.send_due()
                await courier.finish(5)
            assert len(hook.got) == 2


@pytest.mark.parametrize("each", [4, 20, 60])
async def test_the_cost_of_claiming_depends_on_the_due_deliveries_and_that_of_recording_on_the_attempts(
    post: Post, each: int
) -> None:
    """The cost must never be quadratic. A statement is planned only once, perhaps without statistics about the
    table."""
    for n in range(100):
        await fill(post, str(events.OWN_ADDRESS), f"https://shop{n}.example/hooks", each, "pending")
    now = post.own.context.now()
    lanes = await lanes_due(post.own.context.pool, now)
    assert len(lanes) == 100
    for statistics in ("SELECT 1", "ANALYZE deliveries"):
        await post.ask(statistics)
        assert await rows_read(post, *claiming(post, lanes, now, 1)) == 100 * min(each, 1 + LOOK_PAST)
        results = await some_results(post, str(events.OWN_ADDRESS), 20)
        assert await rows_read(post, deliveries._RECORD, *results) == 20


async def test_a_replay_of_one_event_reads_only_that_event_s_deliveries(post: Post) -> None:
    url = "https://shop.example/hooks"
    await fill(post, str(events.OWN_ADDRESS), url, 6_000, "delivered")
    await post.ask("INSERT INTO feed SELECT merchant_id, position, order_id, sequence FROM deliveries")
    now = post.own.context.now()
    for statistics in ("SELECT 1", "ANALYZE feed", "ANALYZE deliveries"):
        await post.ask(statistics)
        asked = (replays._AGAIN, post.merchant.merchant_id, now, None, 2_999, 3_000, now)
        assert await rows_read(post, *asked) < 10, statistics


async def test_a_replay_does_not_change_a_delivery_that_a_worker_claims_while_the_replay_waits(
    post: Post,
) -> None:
    await fill(post, str(events.OWN_ADDRESS), "https://shop.example/hooks", 2, "pending")
    await post.ask("INSERT INTO feed SELECT merchant_id, position, order_id, sequence FROM deliveries")
    context, merchant_id = post.own.context, post.merchant.merchant_id
    began = context.now()
    (lane,) = await lanes_due(context.pool, began)
    claimed, _ = await deliveries.claim(context.pool, merchant_id, began + timedelta(seconds=8), {lane: 1})
    assert [item.tries for item in claimed] == [1]
    assert await replays.send_again(context.pool, merchant_id, began, until=1) == 0


async def test_claims_take_at_most_the_free_places_and_no_delivery_twice(post: Post) -> None:
    with dead_port() as dead:
        gone = await post.register(dead)
        await fill(post, gone["id"], dead, 400, "pending")
        context, taken = post.own.context, []
        lane = Lane(post.merchant.merchant_id, *(await lanes_due(context.pool, context.now()))[0][1:])
        for _ in range(30):
            claimed, _ = await deliveries.claim(context.pool, lane.merchant_id, context.now(), {lane: 16})
            assert len(claimed) <= 16
            taken += [(item.order_id, item.sequence) for item in claimed]
        assert len(taken) == len(set(taken)) == 200
        assert {sequence for _, sequence in taken} == {1}
