"""The service does not start on an unusable cluster and prints one line. It does start while a node is down."""

from __future__ import annotations

import secrets

import asyncpg
import pytest

from cuota.db.citus import distribute
from cuota.db.cluster.entry_node import require_entry
from cuota.db.cluster.serves import require_serving
from cuota.db.migrate import migrate
from cuota.db.pool import UnsafeDatabase
from cuota.run.runtime import checked_cluster, migrated
from support.db.cluster import REGISTERED, at_worker


async def refused(session: asyncpg.Connection) -> str:
    with pytest.raises(UnsafeDatabase) as raised:
        await require_serving(session)
    said = str(raised.value)
    assert said.startswith("The service cannot run on this Citus cluster: ")
    assert "\n" not in said
    return said


async def test_the_start_on_an_unusable_cluster_is_refused_with_the_reason(blank_citus: str) -> None:
    session = await asyncpg.connect(blank_citus)
    await migrate(session, "sandbox")
    assert "tables are not distributed (the first is " in await refused(session)
    await distribute(session)
    assert await require_serving(session) == []

    await session.execute("CREATE FUNCTION save_orders(a integer) RETURNS integer LANGUAGE sql AS 'SELECT 1'")
    assert "functions are not distributed (the first is save_orders)" in await refused(session)
    await session.execute("DROP FUNCTION save_orders(integer)")

    role = f"shut_out_{secrets.token_hex(4)}"
    await session.execute(f"CREATE ROLE {role} NOLOGIN IN ROLE cuota_app; SET ROLE {role}")
    said = await refused(session)
    assert f"the role {role} cannot read the shards of " in said
    assert "not permitted to log in" in said
    await session.execute(f"RESET ROLE; DROP ROLE {role}")

    [first, *_] = await session.fetch(REGISTERED)
    name = session._params.database
    worker = await asyncpg.connect(at_worker(blank_citus, first["host"], first["port"]))
    await worker.execute("SET citus.enable_ddl_propagation = off")
    await worker.execute(f"ALTER DATABASE {name} SET synchronous_commit = off")
    fresh = await asyncpg.connect(blank_citus)
    assert f"{first['port']} has synchronous_commit = off" in await refused(fresh)
    await worker.execute(f"ALTER DATABASE {name} RESET synchronous_commit")
    for each in (worker, fresh, session):
        await each.close()


async def test_a_node_that_is_down_at_the_start_is_reported_and_does_not_prevent_it(blank_citus: str) -> None:
    session = await asyncpg.connect(blank_citus)
    await migrate(session, "sandbox")
    await distribute(session)
    assert await checked_cluster({"dsn": blank_citus}) == []
    [first, *_] = await session.fetch(REGISTERED)
    # Simulate a node that is down: no process listens on that port.
    await session.execute("UPDATE pg_dist_node SET nodeport = 1 WHERE nodeport = $1", first["port"])
    [said] = await checked_cluster({"dsn": blank_citus})
    assert f"{first['host']}:1 (node 1 of the Citus cluster) does not answer" in said
    await session.close()


async def test_a_worker_is_refused_as_the_service_s_database(blank_citus: str, settings: object) -> None:
    session = await asyncpg.connect(blank_citus)
    [first, *_] = await session.fetch(REGISTERED)
    await session.close()
    with pytest.raises(
        UnsafeDatabase, match=r"a worker of a Citus cluster\. Give the address of the coordinator"
    ):
        await migrated(settings, {"dsn": at_worker(blank_citus, first["host"], first["port"])})  # type: ignore[arg-type]


async def entry_refused(coordinator: asyncpg.Connection, url: str) -> str:
    with pytest.raises(UnsafeDatabase) as raised:
        await require_entry(coordinator, url, None)
    said = str(raised.value)
    assert said.startswith("CUOTA_DATABASE_ENTRY_URL: ")
    assert "\n" not in said
    return said


async def test_orders_may_go_through_a_worker_of_the_cluster_and_through_nothing_else(
    blank_citus: str, citus: str
) -> None:
    coordinator = await asyncpg.connect(blank_citus)
    [first, *_] = await coordinator.fetch(REGISTERED)
    worker = at_worker(blank_citus, first["host"], first["port"])
    assert "is not a Citus cluster with distributed tables" in await entry_refused(coordinator, worker)
    await migrate(coordinator, "sandbox")
    await distribute(coordinator)
    assert await require_entry(coordinator, worker, "cuota_app") is True
    assert await checked_cluster({"dsn": blank_citus}, worker) == []
    assert "this is the coordinator" in await entry_refused(coordinator, blank_citus)
    other = at_worker(citus, first["host"], first["port"])
    assert "not a node of the cluster of CUOTA_DATABASE_URL" in await entry_refused(coordinator, other)
    assert "does not exist" in await entry_refused(coordinator, f"{worker}_of_no_name")
    nobody = at_worker(blank_citus, "127.0.0.1", 1)
    assert await require_entry(coordinator, nobody, None) is False
    [said] = await checked_cluster({"dsn": blank_citus}, nobody)
    assert (
        said
        == "The worker of CUOTA_DATABASE_ENTRY_URL does not answer. Orders go through the coordinator until it is back."
    )
    await coordinator.close()
