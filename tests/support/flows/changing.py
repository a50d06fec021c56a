"""Code that the tests of changes in hardship share: an order with a plan, a change, and the check of the books."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

from cuota.core.plan.change import PlanChange
from cuota.core.plan.hardship import (
    HardshipRequest,
)
from cuota.db.payout.books import balances
from cuota.db.verify.recalculate import verify
from cuota.flows.plan.change_plan import agree_on_change, preview_change
from support.flows.collecting import agreed
from support.makers import complete
from support.own_service import Own

WHY = "Lost her job; called on the 24th."


PHONE = "2125550187"


async def order_of(own: Own, amount: str = "100.00", fee: str | None = None) -> UUID:
    created = await own.auto_merchant.create(amount, **({"merchantFeeForPaymentPlan": fee} if fee else {}))
    await complete(own.service, own.auto_merchant.merchant_id, created, phone=PHONE)
    return UUID(created["orderId"])


async def mark_of(own: Own, order_id: UUID, request: HardshipRequest) -> str:
    shown = await preview_change(own.context, own.auto_merchant.merchant_id, order_id, request)
    return shown.found.before.mark


async def change(own: Own, order_id: UUID, request: HardshipRequest, mark: str | None = None) -> PlanChange:
    mark = mark or await mark_of(own, order_id, request)
    return await agree_on_change(
        own.context,
        own.auto_merchant.merchant_id,
        order_id,
        request,
        by="Ana <ana@example.com>",
        reason=WHY,
        mark=mark,
    )


async def whole(own: Own) -> None:
    found = await balances(own.context.pool, own.service.clock.now() + timedelta(days=1))
    assert sum(each.balance for each in found) == 0
    assert (await verify(own.context.pool)).disagreements == []


async def plan_of(own: Own, order_id: UUID) -> list[tuple[int, int]]:
    return [(item.number, item.total) for item in (await agreed(own, order_id)).plan]
