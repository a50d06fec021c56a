"""A shop may have hundreds of thousands of orders. A list of a few days reads the orders of these days, not the newer or older ones."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from cuota.core.desk.sort import Sort
from cuota.core.order.id_bounds import id_bounds
from cuota.db.desk import orders as listing
from cuota.db.desk.orders import Asked, View
from support.db.rows_read import rows_read_by
from support.own_service import Own

MANY = 1000
# Copies of an order, with other ids and times. An id of UUID version 7 begins with its time.
_COPY = """INSERT INTO {table} SELECT (jsonb_populate_record(o, jsonb_build_object('created_at', $2::timestamptz, 'token', gen_random_uuid(),
        'order_id', lpad(to_hex((extract(epoch FROM $2::timestamptz) * 1000)::bigint), 12, '0') || '70008' || lpad(to_hex(n), 15, '0')))).*
    FROM {table} o, generate_series(1, $3::int) n WHERE o.order_id = $1"""
pytestmark = pytest.mark.plain_postgresql("the test reads the statistics of one PostgreSQL server")


async def with_old_and_new_orders(own: Own) -> UUID:
    """Make an order of now among MANY of a month ago and MANY of the next month. Return its id."""
    order_id = UUID((await own.merchant.create("100.00"))["orderId"])
    now = datetime.now(UTC)
    async with own.owner() as owner:
        await owner.execute("SET session_replication_role = replica")
        for days in (-30, 30):
            for table in ("orders", "order_details"):
                await owner.execute(_COPY.format(table=table), order_id, now + timedelta(days=days), MANY)
    return order_id


@pytest.mark.parametrize("sort", [Sort.NEWEST, Sort.OLDEST])
async def test_a_list_of_two_days_reads_only_their_orders_and_then_ends(own: Own, sort: Sort) -> None:
    order_id = await with_old_and_new_orders(own)
    now, merchant_id = datetime.now(UTC), own.merchant.merchant_id
    since, until = now - timedelta(days=1), now + timedelta(days=1)
    asked = Asked(View.ALL, since, until, id_bounds(since, until), sort)
    assert await rows_read_by(own, lambda session: listing.page(session, merchant_id, asked, 50)) < MANY / 10
    found = await listing.page(own.context.pool, merchant_id, asked, 50)
    assert [each.order.order_id for each in found.orders] == [order_id]
    assert found.last is None


@pytest.mark.parametrize("sort", [Sort.NEWEST, Sort.OLDEST])
@pytest.mark.parametrize("days", [-30, 30])
async def test_the_pages_of_one_day_have_all_of_its_orders_once(own: Own, sort: Sort, days: int) -> None:
    await with_old_and_new_orders(own)
    day = datetime.now(UTC) + timedelta(days=days)
    since, until = day - timedelta(days=1), day + timedelta(days=1)
    asked = Asked(View.ALL, since, until, id_bounds(since, until), sort)
    seen: list[UUID] = []
    for _ in range(3):
        found = await listing.page(own.context.pool, own.merchant.merchant_id, asked, MANY // 2)
        seen += [each.order.order_id for each in found.orders]
        if found.last is None:
            break
        asked = replace(asked, after=found.last)
    assert len(seen) == len(set(seen)) == MANY
    assert seen == sorted(seen, reverse=sort is Sort.NEWEST)
