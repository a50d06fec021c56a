"""The operator sees which phones, cards, addresses and browsers many orders share, before and after the policy declines
such orders."""

from __future__ import annotations

from datetime import timedelta
from uuid import uuid4

import pytest

from cuota.core.operator.role import OperatorRole
from cuota.core.risk.policy import Window
from cuota.core.risk.signal import SignalKind
from cuota.db.risk.shared_signals import shared
from cuota.web.pages.operator import velocity
from support.makers import Merchant
from support.pages.operator_staff import OperatorStaff

SIGNAL = "INSERT INTO signals (merchant_id, order_id, kind, value_hash, at) VALUES ($1, $2, 'device', $3, $4)"


@pytest.mark.parametrize(("orders", "from_"), [(1, 2), (2, 2), (3, 2), (40, 20), (41, 21)])
def test_a_value_is_listed_from_half_of_the_limit_but_never_for_a_single_order(
    orders: int, from_: int
) -> None:
    assert velocity.at_least(Window(orders, 24)) == from_


async def test_a_browser_that_orders_too_often_is_listed_with_its_latest_order(
    operator: OperatorStaff, merchant: Merchant, auto_merchant: Merchant
) -> None:
    context = operator.service.context
    limit, browser = context.policy.velocity.device.orders, uuid4().bytes
    first = context.now() - timedelta(minutes=50)
    latest = uuid4()
    for number in range(limit):
        shop = (merchant, auto_merchant)[number % 2]
        order = latest if number == limit - 1 else uuid4()
        at = first + timedelta(seconds=number)
        await context.pool.fetchrow(SIGNAL, shop.merchant_id, order, browser, at)
    await context.pool.fetchrow(SIGNAL, merchant.merchant_id, uuid4(), uuid4().bytes, first)
    found = await shared(context.pool, SignalKind.DEVICE, first, limit, 10)
    assert [(each.latest, each.orders, each.merchants) for each in found] == [(latest, limit, 2)]
    await operator.enter(OperatorRole.RISK)
    await operator.open("/operator/risk")
    page = await operator.open(operator.page.link("Velocity"))
    assert f"/operator/orders/{latest}" in page.seen.links
    assert f"{limit:,}" in page.text
    assert "Declined" in page.text
    await context.pool.fetchrow("DELETE FROM signals WHERE value_hash = $1 RETURNING 1", browser)
