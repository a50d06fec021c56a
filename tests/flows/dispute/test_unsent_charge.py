"""A charge that never arrived at the card rail is not made during a dispute, nor after it changed the payment."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from cuota.db.verify.recalculate import verify
from cuota.flows.dispute.answer_dispute import accept_dispute, withdraw_dispute
from cuota.flows.dispute.close_disputes import settle_due_disputes
from cuota.flows.dispute.notice_return import notice_return
from cuota.flows.order.return_money import return_money
from cuota.rails.card.protocol import CardAnswer, ChargeRequest
from cuota.work.due_orders import settle_due_orders
from support.disputes import charged_back, disputed, network_decides
from support.flows.interrupted import FlakyRail, with_rail
from support.flows.unsent import agreed_of, at_the_network, second, unsent, work, work_until_sure
from support.own_service import Own


async def test_a_charge_that_arrived_is_recorded_during_the_dispute(own: Own) -> None:
    order = await unsent(own, arrives=True)
    await disputed(own.auto_merchant, order, 4000)
    await work(own)
    assert (await second(own, order)).paid
    assert (await verify(own.context.pool)).disagreements == []


@pytest.mark.parametrize("ended_first", [True, False])
async def test_after_a_dispute_that_was_lost_whole_nothing_is_charged(own: Own, *, ended_first: bool) -> None:
    order = await unsent(own)
    dispute = await disputed(own.auto_merchant, order, 10000)
    if ended_first:
        await work_until_sure(own)
    await accept_dispute(own.context, own.auto_merchant.merchant_id, dispute.dispute_id)
    await settle_due_disputes(own.context)
    await nothing_more_is_charged(own, order)


async def test_after_a_refund_of_everything_during_a_dispute_nothing_is_charged(own: Own) -> None:
    order = await unsent(own)
    await disputed(own.auto_merchant, order, 10000)
    await work(own)
    assert (await own.auto_merchant.move(order, "refund", "100.00")).status_code == 200
    await nothing_more_is_charged(own, order)


@pytest.mark.parametrize("ended_first", [True, False])
async def test_a_card_that_lost_a_chargeback_is_not_charged(own: Own, *, ended_first: bool) -> None:
    order = await unsent(own)
    dispute = await charged_back(own.auto_merchant, order, 2500)
    if ended_first:
        await work_until_sure(own)
    await network_decides(own.auto_merchant, order, dispute, for_consumer=True)
    await nothing_more_is_charged(own, order)


async def nothing_more_is_charged(own: Own, order: dict[str, Any]) -> None:
    await work_until_sure(own)
    await return_money(own.context)
    assert (await at_the_network(own))[0] == [2500]
    assert (await agreed_of(own, order)).order.charging is None
    assert (await verify(own.context.pool)).disagreements == []


@pytest.mark.parametrize("scheduled", [True, False])
async def test_a_payment_that_a_dispute_moved_is_charged_on_its_new_day(own: Own, *, scheduled: bool) -> None:
    order = await unsent(own, scheduled=scheduled)
    dispute = await disputed(own.auto_merchant, order, 4000)
    # No worker ran during the dispute.
    own.service.clock.ahead += timedelta(days=20)
    await withdraw_dispute(own.context, own.auto_merchant.merchant_id, dispute.dispute_id)
    await work_until_sure(own)
    assert (await at_the_network(own))[0] == [2500]
    moved = (await second(own, order)).charge_at
    assert moved is not None
    await work(own, moved - own.context.now() + timedelta(seconds=1))
    # The reminder came first.
    await work(own)
    assert (await second(own, order)).paid
    assert (await at_the_network(own))[0] == [2500, 2500]
    assert (await verify(own.context.pool)).disagreements == []


async def test_a_charge_that_never_arrived_ends_during_the_dispute(own: Own) -> None:
    order = await unsent(own)
    await disputed(own.auto_merchant, order, 4000)
    await work(own)
    assert (await agreed_of(own, order)).order.charging is not None
    await work_until_sure(own)
    assert (await agreed_of(own, order)).order.charging is None
    assert (await at_the_network(own))[0] == [2500]


async def test_a_dispute_that_opens_during_the_look_up_stops_the_request(own: Own) -> None:
    order = await unsent(own)

    class Slow(FlakyRail):
        opened = False

        async def find_charge(self, asked: ChargeRequest) -> CardAnswer | None:
            found = await super().find_charge(asked)
            if not self.opened:
                self.opened = True
                await disputed(own.auto_merchant, order, 4000)
            return found

    own.service.clock.ahead += timedelta(seconds=16)
    await settle_due_orders(with_rail(own.context, Slow(own.context.rails.card)))
    assert (await at_the_network(own))[0] == [2500]


@pytest.mark.parametrize("way", ["return notice", "dispute"])
async def test_a_payment_that_was_moved_during_its_charge_is_not_overdue_when_the_card_declines(
    own: Own, way: str
) -> None:
    order = await unsent(own, arrives=True, scheduled=True, card="4000 0000 0000 0341")
    shop = own.auto_merchant
    if way == "dispute":
        dispute = await disputed(shop, order, 4000)
        own.service.clock.ahead += timedelta(days=3)
        await withdraw_dispute(own.context, shop.merchant_id, dispute.dispute_id)
    else:
        await notice_return(own.context, shop.merchant_id, UUID(order["orderId"]), "UPS", "1Z999")
    moved = await second(own, order)
    await work(own)
    assert (await agreed_of(own, order)).order.charging is None
    after = await second(own, order)
    assert (after.state, after.due_on, after.charge_at) == ("scheduled", moved.due_on, moved.charge_at)
    assert (await verify(own.context.pool)).disagreements == []
