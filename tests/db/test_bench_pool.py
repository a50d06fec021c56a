"""The copied orders that the benchmarks run on are complete: `cuota verify` accepts each of them."""

from __future__ import annotations

from uuid import UUID

from bench import seed, work
from cuota.db.verify.recalculate import verify
from support.own_service import Own

COPIES = 20


async def test_verify_accepts_the_copies_of_an_approved_and_of_a_captured_order(own: Own) -> None:
    merchant_id = own.merchant.merchant_id
    approved = await own.merchant.approved("100.00")
    captured = await own.merchant.approved("100.00")
    assert (await own.merchant.move(captured, "capture", "100.00")).status_code == 200
    for model, prefix in ((approved, work.POOL_PREFIX), (captured, work.CAPTURED_PREFIX)):
        await seed.fill(own.where, merchant_id, UUID(model["orderId"]), COPIES, prefix)
    report = await verify(own.context.pool)
    assert report.disagreements == []
    assert report.orders == 2 + 2 * COPIES
