"""If a node of the cluster is down, reads over all merchants skip its merchants. The error differs from that of a lost
session."""

from __future__ import annotations

from collections.abc import AsyncIterator
from uuid import uuid4

import asyncpg
import pytest

from cuota.db.cluster.across import fetch_across
from cuota.db.hosts import NodeLost
from cuota.db.open_pool import open_pool
from cuota.db.order import orders, outcomes
from cuota.db.pool import GONE, Pool
from support.db.made_orders import created
from support.db.on_each_node import merchants_on_each

# Simulate a node that is down: no process listens on that port.
DOWN = "UPDATE pg_dist_node SET nodeport = nodeport - 10000 WHERE groupid = 1"
UP = "UPDATE pg_dist_node SET nodeport = nodeport + 10000 WHERE groupid = 1 AND nodeport < 10000"


@pytest.fixture(autouse=True)
def no_guard(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine, a slow statement would make the guard ask for the nodes, and notice a moment later that one is back."""
    monkeypatch.setattr("cuota.db.cluster.guard.SLOW_SECONDS", 60.0)


@pytest.fixture
async def operator(citus: str) -> AsyncIterator[asyncpg.Connection]:
    session = await asyncpg.connect(citus)
    yield session
    await session.execute(UP)
    await session.close()


@pytest.fixture
async def pool(citus: str) -> AsyncIterator[Pool]:
    opened = await open_pool({"dsn": citus}, 2)
    yield opened
    await opened.close()


async def test_a_read_over_all_merchants_leaves_out_only_those_of_the_dead_node(
    operator: asyncpg.Connection, pool: Pool
) -> None:
    merchants = await merchants_on_each(operator, pool)
    sql = "SELECT DISTINCT merchant_id FROM orders WHERE version >= $1"
    all_found = {row["merchant_id"] for row in await fetch_across(pool, sql, 0)}
    assert merchants[1] | merchants[2] <= all_found
    await operator.execute(DOWN)
    with pytest.raises(NodeLost):
        await pool.fetch(sql, 0)
    found = {row["merchant_id"] for row in await fetch_across(pool, sql, 0)}
    assert merchants[2] <= found
    assert not merchants[1] & found
    await operator.execute(UP)
    assert {row["merchant_id"] for row in await fetch_across(pool, sql, 0)} == all_found


async def test_a_call_of_a_merchant_of_the_dead_node_is_refused_and_the_session_still_works_for_the_others(
    operator: asyncpg.Connection, pool: Pool
) -> None:
    merchants = await merchants_on_each(operator, pool)
    await operator.execute(DOWN)
    [gone, *_], [there, *_] = sorted(merchants[1]), sorted(merchants[2])
    async with pool.session() as session:
        with pytest.raises(NodeLost) as lost:
            await orders.read_with_plan(session, gone, uuid4())
        assert isinstance(lost.value, GONE)
        assert not session.is_closed()
        assert await orders.read_with_plan(session, there, uuid4()) is None
        with pytest.raises(NodeLost):
            await outcomes.create(session, created(gone))
        assert await outcomes.create(session, created(there))
