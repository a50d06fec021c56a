"""Orders that are read at the same moment: each read gets its own order and plan."""

from __future__ import annotations

import asyncio
from uuid import UUID, uuid4

import pytest

from cuota.db.order import orders
from cuota.db.order.by_id import ReadById
from cuota.db.plan import plans
from support.makers import complete
from support.own_service import Own


async def test_orders_that_are_read_at_the_same_moment_each_have_their_own_plan(own: Own) -> None:
    shop, pool = own.auto_merchant, own.context.pool
    amounts = [1000 * n for n in range(4, 10)]
    created = [await shop.create(f"{amount / 100:.2f}") for amount in amounts]
    for order in created:
        await complete(own.service, shop.merchant_id, order)
    order_ids = [UUID(order["orderId"]) for order in created]
    asked = [uuid4(), *order_ids, order_ids[0]]
    agreed = await asyncio.gather(*(plans.read(pool, shop.merchant_id, each) for each in asked))
    assert agreed[0] is None
    assert [(each.order.order_id, each.order.amount) for each in agreed[1:] if each] == list(
        zip([*order_ids, order_ids[0]], [*amounts, amounts[0]], strict=True)
    )
    assert [sum(item.amount for item in each.plan) for each in agreed[1:] if each] == [*amounts, amounts[0]]
    found = await asyncio.gather(*(orders.read_with_plan(pool, shop.merchant_id, each) for each in asked))
    assert [each and each.plan for each in found] == [each and each.plan for each in agreed]
    other = await asyncio.gather(*(plans.read(pool, own.merchant.merchant_id, each) for each in asked))
    assert set(other) == {None}, "another merchant's orders"


@pytest.mark.parametrize(("at_once", "statements"), [(False, [1, 1, 1, 1, 1]), (True, [1, 2, 2, 2, 2])])
async def test_reads_of_the_same_moment_share_a_statement_unless_the_first_one_starts_at_once(
    own: Own, *, at_once: bool, statements: list[int]
) -> None:
    async with own.owner() as owner:
        await owner.execute("CREATE SEQUENCE counted; GRANT ALL ON SEQUENCE counted TO cuota_app")
    read = ReadById(
        "SELECT $2::uuid AS order_id, nextval('counted') AS number WHERE $1::uuid IS NOT NULL",
        """SELECT q.order_id, c.number FROM (SELECT nextval('counted') AS number WHERE $1::uuid IS NOT NULL) c,
            unnest($2::uuid[]) AS q (order_id)""",
        lambda row: int(row["number"]),
        at_once=at_once,
    )
    merchant_id = uuid4()
    found = await asyncio.gather(*(read(own.context.pool, merchant_id, uuid4()) for _ in range(5)))
    assert found == statements
