"""A later payment whose request never reached the card rail is requested again, unless the payment has changed meanwhile."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

import pytest

from cuota.core.plan.charge import NEVER_SENT
from cuota.core.plan.unsent import SURE_AFTER
from cuota.db.plan import rail_figures
from cuota.db.verify.recalculate import verify
from cuota.flows.plan.apply_card_events import apply_card_events
from cuota.flows.plan.return_late_charge import look_again_later
from cuota.flows.plan.settle_refund_event import settle_refund_event
from cuota.flows.plan.store_card_event import store_card_event
from cuota.rails.card.protocol import CardAnswer, CardEvent, CardEventKind, ChargeRequest, RefundRequest
from cuota.rails.unavailable import RailUnavailable
from cuota.work.due_orders import settle_due_orders
from support.flows.interrupted import FlakyRail, with_rail
from support.flows.unsent import agreed_of, at_the_network, second, unsent, work, work_until_sure
from support.own_service import Own


@pytest.mark.parametrize("scheduled", [True, False])
async def test_an_unchanged_payment_is_requested_again_with_its_key(own: Own, *, scheduled: bool) -> None:
    order = await unsent(own, scheduled=scheduled)
    began = (await agreed_of(own, order)).order.charging
    await work(own)
    assert (await second(own, order)).charge_id == began
    assert (await at_the_network(own))[0] == [2500, 2500]
    assert (await verify(own.context.pool)).disagreements == []


@pytest.mark.parametrize("scheduled", [True, False])
async def test_a_payment_that_was_refunded_meanwhile_is_not_charged(own: Own, *, scheduled: bool) -> None:
    order = await unsent(own, scheduled=scheduled)
    assert (await own.auto_merchant.move(order, "refund", "100.00")).status_code == 200
    await work_until_sure(own)
    assert (await at_the_network(own))[0] == [2500]
    assert (await agreed_of(own, order)).order.charging is None
    assert (await verify(own.context.pool)).disagreements == []


async def test_a_payment_that_became_smaller_is_charged_with_its_new_amount(own: Own) -> None:
    order = await unsent(own, scheduled=True)
    assert (await own.auto_merchant.move(order, "refund", "60.00")).status_code == 200
    await work_until_sure(own)
    assert (await second(own, order)).paid
    charged, returned = await at_the_network(own)
    assert (charged, returned) == ([1500, 2500], [])
    assert (await verify(own.context.pool)).disagreements == []


async def test_a_charge_that_was_never_sent_counts_as_no_decline_and_nobody_is_told(own: Own) -> None:
    order = await unsent(own)
    assert (await own.auto_merchant.move(order, "refund", "60.00")).status_code == 200
    told = await own.context.pool.fetch("SELECT kind FROM messages ORDER BY created_at")
    await work_until_sure(own)
    rows = await own.context.pool.fetch("SELECT reason FROM charges WHERE state = 'failed'")
    assert [row["reason"] for row in rows] == [NEVER_SENT]
    agreed = await agreed_of(own, order)
    assert (agreed.plan[1].failures, agreed.declined_at) == (0, ())
    assert await own.context.pool.fetch("SELECT kind FROM messages ORDER BY created_at") == told
    now = own.context.now()
    counted = await rail_figures.figures(own.context.pool, "sandbox", now - timedelta(days=1), now)
    assert counted["sandbox"].declined == 0


async def test_while_a_request_may_still_be_on_its_way_the_charge_does_not_end(own: Own) -> None:
    order = await unsent(own)
    began = (await agreed_of(own, order)).order.charging
    assert (await own.auto_merchant.move(order, "refund", "100.00")).status_code == 200
    await work(own)
    assert (await agreed_of(own, order)).order.charging == began


async def test_the_later_look_ups_of_a_charge_count_from_its_end_not_from_its_first_request(own: Own) -> None:
    order = await unsent(own)
    late = await request_of_pending(own)
    own.service.clock.ahead += SURE_AFTER + timedelta(minutes=1)
    again = own.context.now()
    await settle_due_orders(with_rail(own.context, FlakyRail(own.context.rails.card, lost=1, arrives=False)))
    requested_at = (await agreed_of(own, order)).order.charging_since
    assert requested_at is not None
    assert requested_at >= again
    own.service.clock.ahead += timedelta(hours=2)
    assert await apply_card_events(own.context) == 0
    assert (await own.auto_merchant.move(order, "refund", "100.00")).status_code == 200
    await work(own)
    assert (await agreed_of(own, order)).order.charging is None
    assert (await own.context.rails.card.charge(late)).approved
    own.service.clock.ahead += timedelta(hours=1)
    assert await apply_card_events(own.context) == 1
    assert await at_the_network(own) == ([2500, 2500], [2500])


async def request_of_pending(own: Own) -> ChargeRequest:
    """Return the request of the only charge that has no answer yet."""
    (row,) = await own.context.pool.fetch("SELECT * FROM charges WHERE state = 'pending'")
    ids = row["merchant_id"], row["order_id"]
    return ChargeRequest(row["charge_id"], row["card_token"], row["amount"], "USD", *ids)


async def test_a_charge_that_arrives_after_its_end_goes_back_to_the_card(own: Own) -> None:
    order = await unsent(own)
    late = await request_of_pending(own)
    ids = late.merchant_id, late.order_id
    assert (await own.auto_merchant.move(order, "refund", "100.00")).status_code == 200
    await work_until_sure(own)
    assert (await own.context.rails.card.charge(late)).approved
    for name in ("evt_1", "evt_2"):
        told = CardEvent(name, CardEventKind.CHARGE_CHANGED, own.context.now(), *ids, late.key)
        await store_card_event(own.context, "sandbox", told)
        assert await apply_card_events(own.context) == 1
    charged, returned = await at_the_network(own)
    assert (charged, returned) == ([2500, 2500], [2500])
    assert (await verify(own.context.pool)).disagreements == []


async def test_a_charge_that_arrives_after_its_end_is_found_without_an_event_of_the_processor(
    own: Own,
) -> None:
    order = await unsent(own)
    late = await request_of_pending(own)
    assert (await own.auto_merchant.move(order, "refund", "100.00")).status_code == 200
    await work_until_sure(own)
    own.service.clock.ahead += timedelta(hours=1)
    assert await apply_card_events(own.context) == 1
    assert (await own.context.rails.card.charge(late)).approved
    own.service.clock.ahead += timedelta(days=1)
    assert await apply_card_events(own.context) == 1
    charged, returned = await at_the_network(own)
    assert (charged, returned) == ([2500, 2500], [2500])
    assert await apply_card_events(own.context) == 0
    assert (await verify(own.context.pool)).disagreements == []
    counted = await rail_figures.figures(own.context.pool, "sandbox", own.context.now(), own.context.now())
    assert (list(counted), counted["sandbox"].last_event_at) == (["sandbox"], None)


async def test_a_late_charge_whose_refund_the_rail_refuses_is_listed_until_an_operator_settles_it(
    own: Own,
) -> None:
    order = await unsent(own)
    late = await request_of_pending(own)
    assert (await own.auto_merchant.move(order, "refund", "100.00")).status_code == 200
    await work_until_sure(own)
    card, ids = own.context.rails.card, (late.merchant_id, late.order_id)
    assert (await card.charge(late)).approved
    # Somebody refunded a part in the processor's dashboard, so the whole amount can no longer be refunded.
    assert (await card.refund(RefundRequest(uuid4(), late.key, late.token, 100, *ids))).approved
    own.service.clock.ahead += timedelta(days=2)
    assert await apply_card_events(own.context) == 2
    assert await apply_card_events(own.context) == 1
    [listed] = await rail_figures.money_back(own.context.pool, 10)
    assert (listed.order_id, listed.kind, listed.amount) == (late.order_id, "refund.failed", 2500)
    assert str(late.key) in (listed.reason or "")
    assert await settle_refund_event(own.context, listed.event_id)
    assert await rail_figures.money_back(own.context.pool, 10) == []
    assert (await verify(own.context.pool)).disagreements == []


class SilentRail(FlakyRail):
    """The sandbox's card network, which answers no look-up."""

    async def find_charge(self, asked: ChargeRequest) -> CardAnswer | None:
        raise RailUnavailable("the network does not answer")


async def test_the_later_look_ups_count_from_the_end_also_if_the_worker_died_long_before(own: Own) -> None:
    order = await unsent(own)
    late = await request_of_pending(own)
    began = (await agreed_of(own, order)).order.charging_since
    assert began is not None
    assert (await own.auto_merchant.move(order, "refund", "100.00")).status_code == 200
    own.service.clock.ahead += SURE_AFTER
    # A worker stores the look-ups, and dies before it ends the charge. Then the network answers nobody for two days.
    await look_again_later(own.context, late.merchant_id, late.order_id, late.key, began)
    silent = with_rail(own.context, SilentRail(own.context.rails.card))
    for _ in range(2):
        own.service.clock.ahead += timedelta(days=1)
        await apply_card_events(silent)
        await settle_due_orders(silent)
    await work_until_sure(own)
    assert (await agreed_of(own, order)).order.charging is None
    assert (await own.context.rails.card.charge(late)).approved
    own.service.clock.ahead += timedelta(hours=1)
    assert await apply_card_events(own.context) == 1
    assert await at_the_network(own) == ([2500, 2500], [2500])
