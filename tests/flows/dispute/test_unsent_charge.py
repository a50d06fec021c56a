"""A charge that never arrived at the card rail is not made while a dispute is open."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import pytest

from cuota.core.checkout.ending import Charging
from cuota.db.plan import plans
from cuota.db.verify.recalculate import verify
from cuota.flows.dispute.answer_dispute import withdraw_dispute
from cuota.flows.plan.collect_installments import pay_now
from cuota.work.due_orders import settle_due_orders
from support.card import BACK
from support.disputes import disputed
from support.flows.interrupted import FlakyRail, with_rail
from support.makers import complete
from support.own_service import Own


async def second_charge(own: Own, *, arrives: bool) -> tuple[UUID, UUID]:
    """Pay the second payment of a plan. The rail gives no answer. Then a dispute opens."""
    shop = own.auto_merchant
    order = await shop.create("100.00")
    await complete(own.service, shop.merchant_id, order)
    ids = shop.merchant_id, UUID(order["orderId"])
    rail = FlakyRail(own.context.rails.card, lost=1, arrives=arrives)
    with pytest.raises(Charging):
        await pay_now(with_rail(own.context, rail), *ids, 2, 2500, BACK)
    dispute = await disputed(shop, order, 4000)
    own.service.clock.ahead += timedelta(seconds=16)
    await settle_due_orders(own.context)
    return ids[1], dispute.dispute_id


async def paid(own: Own, order_id: UUID) -> bool:
    agreed = await plans.read(own.context.pool, own.auto_merchant.merchant_id, order_id)
    assert agreed is not None
    return agreed.plan[1].paid


async def test_a_charge_that_never_arrived_waits_for_the_end_of_the_dispute(own: Own) -> None:
    order_id, dispute_id = await second_charge(own, arrives=False)
    assert not await paid(own, order_id)
    async with own.owner() as owner:
        assert await owner.fetchval("SELECT count(*) FROM card_simulator.charges") == 1
    await withdraw_dispute(own.context, own.auto_merchant.merchant_id, dispute_id)
    own.service.clock.ahead += timedelta(seconds=16)
    await settle_due_orders(own.context)
    assert await paid(own, order_id)
    async with own.owner() as owner:
        assert await owner.fetchval("SELECT count(*) FROM card_simulator.charges") == 2
    assert (await verify(own.context.pool)).disagreements == []


async def test_a_charge_that_arrived_is_recorded_during_the_dispute(own: Own) -> None:
    order_id, _ = await second_charge(own, arrives=True)
    assert await paid(own, order_id)
    assert (await verify(own.context.pool)).disagreements == []
