"""An order is created exactly once, even if the database session is lost while it is saved."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID, uuid4

import pytest

from cuota.core.refusal import Code, Refused
from cuota.db.hosts import NodeLost
from cuota.db.order import idempotency
from cuota.db.order.outcomes import Answer
from cuota.db.pool import Pool, Row
from cuota.db.verify.recalculate import verify
from cuota.flows.context import utc_now
from cuota.flows.merchant.manage_merchants import find_merchant
from cuota.flows.order.create_order import Created, OrderRequest, create_order
from support.db.same_pool import SamePool
from support.flows.interrupted import CutPool
from support.own_service import Own

CREATE = "create_orders("
ASKED = OrderRequest(10_000, 0, "A-1", {"items": []}, [])


async def create(own: Own, pool: Pool, lease: UUID | None = None) -> Created:
    """Create an order of 100.00. With a lease, store the answer for the Idempotency-Key `key`."""

    def remember(created: Created) -> Answer:
        assert lease is not None
        return Answer("key", lease, 200, str(created.order_id).encode())

    merchant = await find_merchant(own.context, str(own.merchant.merchant_id))
    return await create_order(replace(own.context, pool=pool), merchant, ASKED, remember if lease else None)


async def created(own: Own) -> list[UUID]:
    """Return the orders with their first event, and check that the ledger agrees."""
    assert (await verify(own.context.pool)).disagreements == []
    async with own.owner() as owner:
        rows = await owner.fetch("SELECT order_id FROM orders JOIN events USING (merchant_id, order_id)")
    return [row["order_id"] for row in rows]


@pytest.mark.parametrize("when", ["before", "after"])
async def test_if_the_session_is_lost_during_the_save_one_order_is_created(own: Own, when: str) -> None:
    pool = CutPool(own, when, call=CREATE)
    order = await create(own, pool)
    assert pool.cut == 1
    assert await created(own) == [order.order_id]


@pytest.mark.parametrize("when", ["before", "after"])
async def test_if_the_session_is_lost_the_answer_is_stored_for_the_idempotency_key_with_the_order(
    own: Own, when: str
) -> None:
    lease, merchant_id = uuid4(), own.merchant.merchant_id
    assert await idempotency.claim(own.context.pool, merchant_id, "key", b"request", lease, utc_now())
    order = await create(own, CutPool(own, when, call=CREATE), lease)
    assert await created(own) == [order.order_id]
    stored = await idempotency.read(own.context.pool, merchant_id, "key", b"request")
    assert stored is not None
    assert (stored.status, stored.body) == (200, str(order.order_id).encode())


class LatePool(SamePool):
    """The first save loses its session. It is applied only when the second save begins."""

    saves = 0

    async def fetchrow(self, sql: str, *values: object) -> Row | None:
        if CREATE in sql:
            self.saves += 1
            if self.saves == 1:
                raise ConnectionError("the session is lost")
            assert await super().fetchrow(sql, *values) is not None
        return await super().fetchrow(sql, *values)


async def test_a_lost_save_that_is_applied_after_the_order_was_looked_for_counts(own: Own) -> None:
    pool = LatePool(own.context.pool)
    order = await create(own, pool)
    assert pool.saves == 2
    assert await created(own) == [order.order_id]


class DownNode(SamePool):
    """The node of the merchant's orders is down: its save may have been applied."""

    statements = 0

    async def fetchrow(self, sql: str, *values: object) -> Row | None:
        del values
        self.statements += 1
        assert CREATE in sql or "FROM orders" in sql
        raise NodeLost("a node of the database cluster cannot be reached")


async def test_if_the_node_is_down_one_more_read_decides_the_answer(own: Own) -> None:
    pool = DownNode(own.context.pool)
    with pytest.raises(Refused) as refused:
        await create(own, pool)
    assert (refused.value.code, refused.value.retry_after) == (Code.UNAVAILABLE, 5)
    assert "no consumer will open it" in str(refused.value)
    assert pool.statements == 2
