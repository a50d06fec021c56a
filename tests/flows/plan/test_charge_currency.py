"""Every charge to a card uses the currency of the order."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from cuota.core.checkout.ending import Charging
from cuota.rails.card.protocol import CardAnswer, ChargeRequest
from cuota.work.due_orders import settle_due_orders
from support.flows.collecting import agreed, set_clock
from support.flows.due import settle_all_due
from support.flows.interrupted import FlakyRail, with_rail
from support.makers import Running, complete
from support.own_service import Own


class _ManyCurrencies(FlakyRail):
    """A card network that accepts and records every currency. The sandbox's network accepts only one."""

    currencies: tuple[str, ...] = ()

    async def charge(self, asked: ChargeRequest) -> CardAnswer:
        self.currencies += (asked.currency,)
        return await super().charge(replace(asked, currency="USD"))


async def test_every_charge_at_the_checkout_by_the_worker_and_on_later_days_is_in_the_order_s_currency(
    own: Own,
) -> None:
    created = await own.auto_merchant.create("100.00")
    order_id = UUID(created["orderId"])
    async with own.owner() as owner:
        await owner.execute("UPDATE orders SET currency = 'CAD' WHERE order_id = $1", order_id)
    rail = _ManyCurrencies(own.context.rails.card, lost=1, arrives=False)
    context = with_rail(own.context, rail)
    service = Running(own.service.settings, context, own.service.clock, own.service.app)
    with pytest.raises(Charging):
        await complete(service, own.auto_merchant.merchant_id, created)
    assert rail.currencies == ("CAD",)

    # The charge never arrived, so the worker requests it again from the stored data.
    async with own.service.clock.moved(seconds=16):
        await settle_due_orders(context)
    assert rail.currencies == ("CAD",) * 2

    second = (await agreed(own, order_id)).plan[1].charge_at
    assert second is not None
    set_clock(own, second)
    await settle_all_due(context)
    assert (await agreed(own, order_id)).plan[1].paid
    assert rail.currencies == ("CAD",) * 3
