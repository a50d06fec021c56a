"""A batch of saves locks its orders in the order of their ids, so that two batches with the same orders never deadlock."""

from __future__ import annotations

import asyncio
from uuid import UUID, uuid4

from cuota.core.order.capture import capture
from cuota.core.order.movement import MovementKind, MovementRequest
from cuota.core.order.outcome import Outcome
from cuota.db.order import orders, outcomes
from support.db.locks import holder
from support.own_service import Own

LOCK = "SELECT 1 FROM orders WHERE merchant_id = $1 AND order_id = $2 FOR UPDATE NOWAIT"


async def captured(own: Own, order_id: UUID) -> Outcome:
    found = await orders.read_with_plan(own.context.pool, own.merchant.merchant_id, order_id)
    assert found is not None
    asked = MovementRequest(MovementKind.CAPTURE, "batch", 1000)
    return capture(found.order, asked, uuid4(), own.context.now(), found.terms)


async def test_a_batch_that_waits_for_an_order_holds_no_order_with_a_higher_id(own: Own) -> None:
    ids = sorted([UUID((await own.merchant.approved("100.00"))["orderId"]) for _ in range(3)])
    batch = [await captured(own, order_id) for order_id in reversed(ids)]
    async with holder(own.where) as other:
        await other.run(LOCK, own.merchant.merchant_id, ids[1])
        saving = asyncio.ensure_future(outcomes._save_together(own.context.pool, batch))
        await other.until_waits(saving)
        await other.run(LOCK, own.merchant.merchant_id, ids[2])
    assert await saving == [True] * 3
