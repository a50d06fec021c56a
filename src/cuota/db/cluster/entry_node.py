"""Checks at the start whether a worker can be the node through which the service reads and saves orders."""

from __future__ import annotations

import asyncpg

from cuota.db import hosts
from cuota.db.cluster.serves import require_serving
from cuota.db.nodes import is_sharded
from cuota.db.pool import GONE, Connection, UnsafeDatabase

SETTING = "CUOTA_DATABASE_ENTRY_URL"
CONNECT_SECONDS = 5
# The database and its cluster. Every node that has the cluster's metadata returns the same.
_CLUSTER = """SELECT current_database()::text AS name, ARRAY(SELECT groupid || ' ' || nodename || ':' || nodeport FROM pg_dist_node
    WHERE noderole = 'primary' ORDER BY groupid) AS nodes, (SELECT groupid FROM pg_dist_local_group) = 0 AS coordinates"""
_REFUSED = (asyncpg.InvalidAuthorizationSpecificationError, asyncpg.InvalidCatalogNameError)


async def require_entry(coordinator: Connection, url: str, takes: str | None) -> bool:
    """Raise UnsafeDatabase unless the address is that of a worker of the coordinator's cluster. Return False if it is unreachable now.

    `takes` is the role that the service's sessions switch to.
    """
    if not await is_sharded(coordinator):
        raise _wrong("CUOTA_DATABASE_URL is not a Citus cluster with distributed tables. Remove the setting")
    try:
        entry = await hosts.connect(url, timeout=CONNECT_SECONDS)
    except _REFUSED as problem:
        raise _wrong(str(problem).rstrip(".")) from None
    except (TimeoutError, *GONE):
        return False
    try:
        await _require_worker(coordinator, entry)
        if takes:
            await entry.execute(f"SET ROLE {takes}")
        await require_serving(entry)
    finally:
        await entry.close()
    return True


async def _require_worker(coordinator: Connection, entry: Connection) -> None:
    if not await is_sharded(entry):
        raise _wrong("this database is not a node of the cluster")
    expected, found = await coordinator.fetchrow(_CLUSTER), await entry.fetchrow(_CLUSTER)
    if (found["name"], found["nodes"]) != (expected["name"], expected["nodes"]):
        raise _wrong("this database is not a node of the cluster of CUOTA_DATABASE_URL")
    if found["coordinates"]:
        raise _wrong("this is the coordinator. Give the address of a worker, or remove the setting")


def _wrong(why: str) -> UnsafeDatabase:
    return UnsafeDatabase(f"{SETTING}: {why}. See docs/scaling.md, Through a worker.")
