"""A first payment that never reached the card rail is not made after the order's time: the consumer has left long ago."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from cuota.core.checkout.ending import Charging
from cuota.core.plan.charge import NEVER_SENT
from cuota.core.plan.unsent import SURE_AFTER
from cuota.db.plan import charges
from cuota.db.verify.recalculate import verify
from cuota.flows.charge_card import request_again
from cuota.flows.plan.apply_card_events import apply_card_events
from cuota.flows.plan.return_late_charge import LOOK_AGAIN_AFTER
from cuota.work.due_orders import settle_due_orders
from support.flows.interrupted import FlakyRail, with_rail
from support.makers import Running, complete
from support.own_service import Own

MINUTE = timedelta(minutes=1)


async def charging(own: Own, *, arrives: bool = False) -> dict[str, Any]:
    """Make an order whose consumer pressed the button. The rail gives no answer."""
    created = await own.auto_merchant.create("100.00")
    rail = FlakyRail(own.context.rails.card, lost=1, arrives=arrives)
    service = Running(own.service.settings, with_rail(own.context, rail), own.service.clock, own.service.app)
    with pytest.raises(Charging):
        await complete(service, own.auto_merchant.merchant_id, created)
    return created


async def later(own: Own, passed: timedelta, times: int = 3) -> None:
    """Let time pass while the service or the rail is down, and then do the worker's job a few times."""
    own.service.clock.ahead += passed
    for _ in range(times):
        await settle_due_orders(own.context)
        own.service.clock.ahead += timedelta(seconds=16)


async def network(own: Own) -> int:
    async with own.owner() as owner:
        return int(await owner.fetchval("SELECT count(*) FROM card_simulator.charges"))


async def test_a_first_payment_is_not_requested_again_days_later_and_the_order_is_abandoned(own: Own) -> None:
    order = await charging(own)
    await later(own, timedelta(days=3))
    assert await network(own) == 0
    record = await own.auto_merchant.read(order)
    assert (record["orderStatus"], record["paymentState"]) == ("Abandoned", "NONE")
    rows = await own.context.pool.fetch("SELECT state, reason FROM charges")
    assert [tuple(row) for row in rows] == [("failed", NEVER_SENT)]
    assert (await verify(own.context.pool)).disagreements == []


async def test_a_first_payment_is_requested_again_while_the_order_is_open(own: Own) -> None:
    order = await charging(own)
    await later(own, 50 * MINUTE)
    assert (await own.auto_merchant.read(order))["orderStatus"] == "Approved"


async def test_a_first_payment_that_arrived_is_recorded_days_later(own: Own) -> None:
    order = await charging(own, arrives=True)
    await later(own, timedelta(days=3))
    assert (await own.auto_merchant.read(order))["orderStatus"] == "Approved"
    assert await network(own) == 1


async def test_the_order_stays_open_while_a_request_may_still_be_on_its_way(own: Own) -> None:
    order = await charging(own)
    await later(own, 61 * MINUTE, times=1)
    assert (await own.auto_merchant.read(order))["orderStatus"] == "Created"
    await later(own, SURE_AFTER)
    assert (await own.auto_merchant.read(order))["orderStatus"] == "Abandoned"
    assert await network(own) == 0


async def test_a_first_payment_that_arrives_after_its_end_is_refunded(own: Own) -> None:
    order = await charging(own)
    ids = own.auto_merchant.merchant_id, UUID(order["orderId"])
    pending = await charges.pending(own.context.pool, *ids)
    assert pending is not None
    await later(own, timedelta(days=3))
    await own.context.rails.card.charge(request_again(pending, *ids))
    own.service.clock.ahead += LOOK_AGAIN_AFTER[0] + MINUTE
    await apply_card_events(own.context)
    async with own.owner() as owner:
        assert await owner.fetchval("SELECT sum(amount) FROM card_simulator.refunds") == 2500
    assert (await own.auto_merchant.read(order))["orderStatus"] == "Abandoned"
