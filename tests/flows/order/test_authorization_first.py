"""An uncaptured order is voided before its second installment is due, even if other work is late or a rail does not
answer."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from uuid import UUID

import pytest

from cuota.core.checkout.ending import Charging
from cuota.db.plan import plans
from cuota.db.verify.recalculate import verify
from cuota.flows.checkout.take_step import Problem
from cuota.flows.plan.limit_asks import Asker
from cuota.flows.plan.manage_plan import find_plan, pay_early
from cuota.rails.card.protocol import CardAnswer, ChargeRequest
from cuota.work import due_orders
from cuota.work.due_orders import settle_due_orders
from support.flows.collecting import ZONE, charged, set_clock
from support.flows.due import settle_all_due
from support.flows.interrupted import FlakyRail, with_rail
from support.makers import complete
from support.own_service import Own


async def authorized(own: Own, at: datetime | None = None) -> UUID:
    """Make an approved order without a capture."""
    if at is not None:
        set_clock(own, at)
    created = await own.merchant.create("100.00")
    await complete(own.service, own.merchant.merchant_id, created)
    return UUID(created["orderId"])


async def told(own: Own, order_id: UUID) -> list[str]:
    async with own.owner() as owner:
        rows = await owner.fetch("SELECT type FROM events WHERE order_id = $1 ORDER BY sequence", order_id)
    return [row["type"] for row in rows]


async def test_a_late_worker_voids_the_order_and_charges_no_card(own: Own) -> None:
    order_id = await authorized(own, datetime(2027, 1, 5, 15, tzinfo=ZONE))
    set_clock(own, datetime(2027, 1, 19, 0, 5, tzinfo=ZONE))
    await settle_all_due(own.context)
    assert await charged(own) == [(1, 2500, "paid")]
    assert (await told(own, order_id))[-1] == "authorization.expired"
    assert (await verify(own.context.pool)).disagreements == []


@pytest.mark.parametrize(
    "pressed", [datetime(2027, 3, 5, 23, 30, tzinfo=ZONE), datetime(2027, 1, 5, 23, 59, 50, tzinfo=ZONE)]
)
async def test_an_authorization_has_ended_when_the_second_installment_is_due(
    own: Own, pressed: datetime
) -> None:
    # If the clocks go forward meanwhile, thirteen days end an hour later. Also, the card's answer may arrive after
    # midnight.
    rail = FlakyRail(own.context.rails.card, lost=1)
    own.service.context, context = with_rail(own.context, rail), own.context
    with pytest.raises(Charging):
        await authorized(own, pressed)
    own.service.context = context
    own.service.clock.ahead += timedelta(seconds=16)
    await settle_all_due(own.context)
    async with own.owner() as owner:
        order_id = await owner.fetchval("SELECT order_id FROM plans")
    agreed = await plans.read(own.context.pool, own.merchant.merchant_id, order_id)
    assert agreed is not None
    ends, second = agreed.found.order.authorization_expires_at, agreed.found.plan[1].charge_at
    assert ends is not None
    assert second is not None
    assert ends <= second
    set_clock(own, second)
    await settle_all_due(own.context)
    assert await charged(own) == [(1, 2500, "paid")]


async def test_a_card_rail_that_does_not_answer_delays_neither_the_warnings_nor_the_end_of_the_authorization(
    own: Own,
) -> None:
    order_id = await authorized(own)
    own.service.clock.ahead += timedelta(days=9)
    silent = with_rail(own.context, FlakyRail(own.context.rails.card, lost=10_000, arrives=False))
    async with own.owner() as owner:
        consumer = await owner.fetchval("SELECT consumer_id FROM plans WHERE order_id = $1", order_id)
    detail = await find_plan(silent, consumer, own.merchant.merchant_id, order_id)
    assert detail is not None
    with pytest.raises(Problem):
        await pay_early(silent, detail, [2], 2500, Asker("2125550187"))
    for _ in range(10):
        own.service.clock.ahead += timedelta(hours=12)
        await settle_due_orders(silent)
    assert (await told(own, order_id))[2:] == ["authorization.expiring"] * 2 + ["authorization.expired"]


async def test_a_worker_that_was_stopped_sends_one_warning_with_the_time_that_is_left(own: Own) -> None:
    order_id = await authorized(own, datetime(2027, 1, 5, 15, tzinfo=ZONE))
    set_clock(own, datetime(2027, 1, 18, 12, tzinfo=ZONE))
    await settle_all_due(own.context)
    assert (await told(own, order_id))[2:] == ["authorization.expiring"]
    async with own.owner() as owner:
        message = await owner.fetchval("SELECT message FROM events WHERE type = 'authorization.expiring'")
    assert message.startswith("The authorization ends in 3 hours;")


class _Broken(FlakyRail):
    """A rail that raises an unexpected error for some cards."""

    async def charge(self, asked: ChargeRequest) -> CardAnswer:
        raise ValueError("garbage")


async def test_orders_that_fail_do_not_block_other_orders(own: Own, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(due_orders, "BATCH", 2)
    for _ in range(3):
        order_id = await authorized(own)
        await own.merchant.move({"orderId": order_id}, "capture", "100.00")
    broken = with_rail(own.context, _Broken(own.context.rails.card))
    agreed = await plans.read(own.context.pool, own.merchant.merchant_id, order_id)
    assert agreed is not None
    assert agreed.found.plan[1].charge_at is not None
    set_clock(own, agreed.found.plan[1].charge_at)
    for _ in range(4):
        await settle_due_orders(replace(broken))
    # Each order was tried once although all fail: no order blocks the others.
    async with own.owner() as owner:
        asked = await owner.fetchval("SELECT count(DISTINCT order_id) FROM charges WHERE installment = 2")
    assert asked == 3
