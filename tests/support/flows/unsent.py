"""The second payment of a plan, whose request never reached the card rail."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from cuota.core.checkout.ending import Charging
from cuota.core.installment import Installment
from cuota.core.plan.unsent import SURE_AFTER
from cuota.db.plan import plans
from cuota.db.plan.plans import Agreed
from cuota.flows.plan.collect_installments import collect, pay_now
from cuota.work.due_orders import settle_due_orders
from support.card import BACK
from support.flows.interrupted import FlakyRail, with_rail
from support.makers import complete
from support.own_service import Own


async def unsent(own: Own, *, arrives: bool = False, scheduled: bool = False, **more: Any) -> dict[str, Any]:
    """Charge the second payment, on its day or for the consumer. The rail gives no answer. Return the order.

    `more` is passed to `complete`.
    """
    shop = own.auto_merchant
    order = await shop.create("100.00")
    await complete(own.service, shop.merchant_id, order, **more)
    ids = shop.merchant_id, UUID(order["orderId"])
    rail = with_rail(own.context, FlakyRail(own.context.rails.card, lost=1, arrives=arrives))
    if scheduled:
        later = (await second(own, order)).charge_at
        assert later is not None
        own.service.clock.ahead += later - own.context.now() + timedelta(seconds=1)
        # The reminder comes first.
        while (await agreed_of(own, order)).order.charging is None:
            await collect(rail, *ids)
    else:
        with pytest.raises(Charging):
            await pay_now(rail, *ids, 2, 2500, BACK)
    return order


async def work(own: Own, passed: timedelta = timedelta(seconds=16)) -> None:
    """Let time pass, and do the worker's job."""
    own.service.clock.ahead += passed
    await settle_due_orders(own.context)


async def work_until_sure(own: Own) -> None:
    """Do the worker's job at every look-up, until a request that was on its way has surely ended."""
    for _ in range(int(SURE_AFTER / timedelta(seconds=16)) + 2):
        await work(own)


async def agreed_of(own: Own, order: dict[str, Any]) -> Agreed:
    """Return the order with its plan."""
    agreed = await plans.read(own.context.pool, own.auto_merchant.merchant_id, UUID(order["orderId"]))
    assert agreed is not None
    return agreed


async def second(own: Own, order: dict[str, Any]) -> Installment:
    """Return the second payment."""
    return (await agreed_of(own, order)).plan[1]


async def at_the_network(own: Own) -> tuple[list[int], list[int]]:
    """Return the amounts of the charges and of the refunds that the card network has, in cents."""
    async with own.owner() as owner:
        charged = await owner.fetch(
            "SELECT amount FROM card_simulator.charges WHERE approved ORDER BY amount"
        )
        returned = await owner.fetch("SELECT amount FROM card_simulator.refunds ORDER BY amount")
    return [row["amount"] for row in charged], [row["amount"] for row in returned]
