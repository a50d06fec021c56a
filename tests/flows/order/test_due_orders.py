"""The job for due orders: what happens to an order that cannot be settled now."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from cuota.db.hosts import NodeLost
from cuota.db.order import orders
from cuota.db.pool import Row
from cuota.work.due_orders import ASIDE, settle_due_orders
from support.db.same_pool import SamePool
from support.own_service import Own


class FailingRead(SamePool):
    """The first read of an order fails with this exception."""

    def __init__(self, own: Own, problem: Exception) -> None:
        super().__init__(own.context.pool)
        self._problem: Exception | None = problem

    async def fetchrow(self, sql: str, *values: object) -> Row | None:
        if sql == orders.WITH_PLAN and self._problem is not None:
            problem, self._problem = self._problem, None
            raise problem
        return await super().fetchrow(sql, *values)


async def expired(own: Own) -> None:
    """Make an order whose checkout has timed out."""
    await own.merchant.create("100.00")
    own.service.clock.ahead += timedelta(minutes=own.context.settings.order_minutes, seconds=1)


@pytest.mark.parametrize("lost", [ConnectionError("the session is lost"), NodeLost("the node is down")])
async def test_an_order_whose_database_session_is_lost_stays_due(own: Own, lost: Exception) -> None:
    await expired(own)
    context = replace(own.context, pool=FailingRead(own, lost))
    assert await settle_due_orders(context) == 0
    assert await settle_due_orders(context) == 1


async def test_an_order_that_fails_for_another_reason_waits_a_minute(own: Own) -> None:
    await expired(own)
    context = replace(own.context, pool=FailingRead(own, ValueError("a bug")))
    assert await settle_due_orders(context) == 0
    assert await settle_due_orders(context) == 0
    own.service.clock.ahead += ASIDE
    assert await settle_due_orders(context) == 1
