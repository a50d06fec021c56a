"""A node that hangs keeps its connections open and answers nothing: the wait for it ends, and the other merchants are served."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Iterator
from urllib.parse import urlsplit
from uuid import UUID, uuid4

import asyncpg
import pytest

from cuota.db.cluster.across import fetch_across
from cuota.db.cluster.living import LivingNodes
from cuota.db.cluster.watch import NodeWatch
from cuota.db.hosts import NodeLost
from cuota.db.open_pool import open_pool
from cuota.db.order import orders, outcomes
from cuota.db.pool import Pool
from support.db.cluster import REGISTERED, at_worker
from support.db.made_orders import created
from support.db.on_each_node import merchants_on_each

SESSIONS = 3
ALL = "SELECT DISTINCT merchant_id FROM orders WHERE version >= $1"
# The connections that Citus keeps to this node.
KEPT = "SELECT pid FROM pg_stat_activity WHERE datname = $1 AND backend_type = 'client backend'"
# The statements that still wait for the node on the coordinator, although their session is closed.
WAITING = """SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'cuota'
    AND state = 'active'"""


def _send(which: signal.Signals, processes: list[int]) -> None:
    for process in processes:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, which)


class HangingNode:
    """Node 1. While it hangs, the processes of its open connections are stopped, and it accepts no new connection."""

    def __init__(self, coordinator: asyncpg.Connection, worker: asyncpg.Connection, base: str) -> None:
        self.coordinator, self._worker, self._base = coordinator, worker, base

    @contextlib.contextmanager
    def _stopped(self, processes: list[int]) -> Iterator[None]:
        try:
            _send(signal.SIGSTOP, processes)
            yield
        finally:
            _send(signal.SIGCONT, processes)

    @contextlib.asynccontextmanager
    async def hangs(self) -> AsyncIterator[None]:
        kept = [row["pid"] for row in await self._worker.fetch(KEPT, self._base)]
        await self._worker.execute(f"ALTER DATABASE {self._base} ALLOW_CONNECTIONS false")
        try:
            with self._stopped(kept):
                yield
        finally:
            await self._worker.execute(f"ALTER DATABASE {self._base} ALLOW_CONNECTIONS true")


@pytest.fixture
async def node(on_citus: str, citus: str) -> AsyncIterator[HangingNode]:
    coordinator = await asyncpg.connect(citus)
    host, port = (await coordinator.fetch(REGISTERED))[0]
    worker = await asyncpg.connect(at_worker(on_citus, host, port))
    await worker.execute("SET citus.enable_ddl_propagation = off")
    process = await worker.fetchval("SELECT pg_backend_pid()")
    try:
        os.kill(process, 0)
    except OSError:
        pytest.skip("the test stops processes of a worker, so the worker must be on this machine")
    yield HangingNode(coordinator, worker, urlsplit(citus).path.removeprefix("/"))
    await worker.close()
    await coordinator.close()


@pytest.fixture
async def pool(citus: str) -> AsyncIterator[Pool]:
    opened = await open_pool({"dsn": citus}, SESSIONS)
    yield opened
    await opened.close()


async def until_all_answer(pool: Pool) -> None:
    """Wait until the guard has noticed that the node is back."""
    while pool.knows_silent:  # noqa: ASYNC110 - the guard tells nobody
        await asyncio.sleep(0.1)


async def read_at_once(pool: Pool, merchant_id: UUID, times: int = SESSIONS) -> list[object]:
    """Read an order in this many sessions at the same moment, so that each has a connection to the merchant's node."""
    reads = (orders.read_with_plan(pool, merchant_id, uuid4()) for _ in range(times))
    return await asyncio.gather(*reads, return_exceptions=True)


async def one_on_each(node: HangingNode, pool: Pool) -> tuple[UUID, UUID]:
    """Return a merchant on the node, whose rows every session has read once, and a merchant on the other node."""
    merchants = await merchants_on_each(node.coordinator, pool)
    gone, there = min(merchants[1]), min(merchants[2])
    assert await read_at_once(pool, gone) == [None] * SESSIONS
    return gone, there


async def test_calls_of_a_hanging_node_are_refused_and_the_sessions_are_free_for_the_other_merchants(
    node: HangingNode, pool: Pool
) -> None:
    gone, there = await one_on_each(node, pool)
    async with node.hangs():
        with pytest.raises(NodeLost):
            await orders.read_with_plan(pool, gone, uuid4())
        # The other sessions had a connection to the node, too. They were replaced, so none of them waits.
        assert pool.knows_silent
        refused = await read_at_once(pool, gone, 4 * SESSIONS)
        assert all(isinstance(each, NodeLost) for each in refused)
        with pytest.raises(NodeLost):
            await outcomes.create(pool, created(gone))
        assert await node.coordinator.fetchval(WAITING) <= 1
        assert await read_at_once(pool, there) == [None] * SESSIONS
        assert await outcomes.create(pool, created(there))
    await until_all_answer(pool)
    assert await read_at_once(pool, gone) == [None] * SESSIONS
    assert await outcomes.create(pool, created(gone))


async def test_all_sessions_that_wait_for_a_hanging_node_are_given_back(
    node: HangingNode, pool: Pool
) -> None:
    gone, there = await one_on_each(node, pool)
    async with node.hangs():
        waiting = asyncio.create_task(read_at_once(pool, gone))
        assert all(isinstance(each, NodeLost) for each in await waiting)
        assert await read_at_once(pool, there) == [None] * SESSIONS


async def test_reads_over_all_merchants_leave_out_those_of_a_hanging_node_and_name_it(
    node: HangingNode, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cuota.db.cluster.watch.PATIENCE_SECONDS", 60.0)
    merchants = await merchants_on_each(node.coordinator, pool)
    every = {row["merchant_id"] for row in await fetch_across(pool, ALL, 0)}
    assert merchants[1] | merchants[2] <= every
    async with node.hangs():
        found = {row["merchant_id"] for row in await fetch_across(pool, ALL, 0)}
        assert merchants[2] <= found
        assert not merchants[1] & found
        living = LivingNodes(pool)
        assert {row["merchant_id"] for row in await living.fetch(ALL, 0)} == found
        assert living.left_out == [1]
        assert await NodeWatch(pool).down() == [1]
    await until_all_answer(pool)
    assert {row["merchant_id"] for row in await fetch_across(pool, ALL, 0)} == every
