"""`/health/ready` on a cluster names the unreachable nodes by number, and stays ready for the others."""

from __future__ import annotations

import asyncpg
import pytest

from cuota.db.cluster.watch import NodeWatch
from cuota.db.open_pool import open_pool


@pytest.fixture
async def watched(citus: str) -> object:
    """Yield a pool on the cluster, the watch over its nodes, and a session that can simulate a node that is down."""
    session, pool = await asyncpg.connect(citus), await open_pool({"dsn": citus}, 2)
    yield session, NodeWatch(pool)
    await session.execute("UPDATE pg_dist_node SET nodeport = nodeport + 10000 WHERE nodeport < 10000")
    await pool.close()
    await session.close()


async def test_a_node_that_is_down_is_named_by_its_number_until_it_is_back(
    watched: tuple[asyncpg.Connection, NodeWatch], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cuota.db.cluster.watch.EVERY_SECONDS", 0.0)
    monkeypatch.setattr("cuota.db.cluster.watch.PATIENCE_SECONDS", 60.0)
    session, watch = watched
    assert (await watch.down(), watch.nobody_served) == ([], False)
    # Simulate a node that is down: no process listens on that port.
    move = "UPDATE pg_dist_node SET nodeport = nodeport {} 10000 WHERE groupid = ANY ($1::int[])"
    await session.execute(move.format("-"), [1])
    assert (await watch.down(), watch.nobody_served) == ([1], False)
    await session.execute(move.format("-"), [2])
    assert (await watch.down(), watch.nobody_served) == ([1, 2], True)
    await session.execute(move.format("+"), [1, 2])
    assert (await watch.down(), watch.nobody_served) == ([], False)
