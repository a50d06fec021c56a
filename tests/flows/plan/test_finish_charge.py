"""A charge whose answer was lost is looked up by its key, and requested again only if it never arrived."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from cuota.core.checkout.ending import Charging
from cuota.db.order.due import due_orders
from cuota.db.verify.recalculate import verify
from cuota.work.due_orders import _settle_one, settle_due_orders
from support.flows.interrupted import FlakyRail, with_rail
from support.makers import Running, complete
from support.own_service import Own

DECLINED = "4000 0000 0000 0002"
PAYS = "4242 4242 4242 4242"


async def charging(own: Own, rail: FlakyRail, card: str = PAYS) -> dict[str, Any]:
    """Make an order whose consumer pressed the button. The rail's answer was lost."""
    created = await own.auto_merchant.create("100.00")
    service = Running(own.service.settings, with_rail(own.context, rail), own.service.clock, own.service.app)
    with pytest.raises(Charging):
        await complete(service, own.auto_merchant.merchant_id, created, card)
    return created


async def network(own: Own) -> int:
    async with own.owner() as owner:
        return int(await owner.fetchval("SELECT count(*) FROM card_simulator.charges"))


async def finished(own: Own, order: dict[str, Any], rail: FlakyRail) -> dict[str, Any]:
    """Do the worker's job, and return the order."""
    async with own.service.clock.moved(seconds=16):
        await settle_due_orders(with_rail(own.context, rail))
        assert await settle_due_orders(with_rail(own.context, rail)) == 0
    assert (await verify(own.context.pool)).disagreements == []
    return await own.auto_merchant.read(order)


async def test_a_successful_charge_whose_answer_was_lost_is_found_and_the_order_is_approved(own: Own) -> None:
    rail = FlakyRail(own.context.rails.card, lost=1)
    order = await charging(own, rail)
    record = await finished(own, order, rail)
    assert (record["orderStatus"], record["paymentState"]) == ("Approved", "CAPTURED")
    assert (len(rail.asked), await network(own)) == (1, 1)


async def test_a_charge_that_began_after_the_order_was_found_is_left_to_its_own_request(own: Own) -> None:
    rail = FlakyRail(own.context.rails.card, lost=1, arrives=False)
    order = await charging(own, rail)
    asked = list(rail.asked)
    # The order is in the worker's list, because it was due for something else.
    assert await _settle_one(
        with_rail(own.context, rail), own.auto_merchant.merchant_id, UUID(order["orderId"])
    )
    assert list(rail.asked) == asked
    assert await network(own) == 0


async def test_a_charge_that_never_arrived_is_requested_again_with_its_key(own: Own) -> None:
    rail = FlakyRail(own.context.rails.card, lost=1, arrives=False)
    order = await charging(own, rail)
    assert await network(own) == 0
    assert (await finished(own, order, rail))["orderStatus"] == "Approved"
    assert len(rail.asked) == 2
    assert len(set(rail.asked)) == await network(own) == 1


async def test_after_a_declined_charge_whose_answer_was_lost_the_consumer_can_try_another_card(
    own: Own,
) -> None:
    rail = FlakyRail(own.context.rails.card, lost=1)
    order = await charging(own, rail, DECLINED)
    assert (await finished(own, order, rail))["orderStatus"] == "Created"
    await complete(own.service, own.auto_merchant.merchant_id, order)
    assert (await own.auto_merchant.read(order))["orderStatus"] == "Approved"


async def test_a_charge_is_not_looked_up_before_its_timeout_has_passed(own: Own) -> None:
    rail = FlakyRail(own.context.rails.card, lost=1)
    order = await charging(own, rail)
    assert await settle_due_orders(with_rail(own.context, rail)) == 0
    assert (await own.auto_merchant.read(order))["orderStatus"] == "Created"


async def test_while_the_rail_does_not_answer_the_worker_waits_between_look_ups(own: Own) -> None:
    rail = FlakyRail(own.context.rails.card, lost=3, arrives=False)
    order = await charging(own, rail)
    async with own.service.clock.moved(seconds=16):
        # The worker runs a job again at once if the job returned more than zero. A look-up without an answer must not
        # count.
        assert await settle_due_orders(with_rail(own.context, rail)) == 0
        assert (await finished(own, order, FlakyRail(own.context.rails.card)))["orderStatus"] == "Approved"


async def test_an_order_whose_charge_gets_no_answer_goes_to_the_end_of_the_queue(own: Own) -> None:
    rail = FlakyRail(own.context.rails.card, lost=3, arrives=False)
    await charging(own, rail)
    async with own.service.clock.moved(seconds=16):
        assert len(await due_orders(own.context.pool, own.context.now(), 10)) == 1
        await settle_due_orders(with_rail(own.context, rail))
        assert await due_orders(own.context.pool, own.context.now(), 10) == []


async def test_an_order_whose_time_ends_during_a_charge_is_approved_and_not_abandoned(own: Own) -> None:
    rail = FlakyRail(own.context.rails.card, lost=1)
    order = await charging(own, rail)
    async with own.service.clock.moved(hours=2):
        await settle_due_orders(with_rail(own.context, rail))
    assert (await own.auto_merchant.read(order))["orderStatus"] == "Approved"
