"""Checks at the start whether the service can run on this cluster. The error says in one line what to do."""

from __future__ import annotations

import json

import asyncpg

from cuota.db.citus import COORDINATOR, PLACES, unplaced
from cuota.db.nodes import HOW, REACH_SECONDS, Node, all_nodes, has_citus, is_sharded
from cuota.db.pool import LOST, Connection, UnsafeDatabase

# A merchant id that belongs to the given node. The merchant need not exist.
_SOMEBODY = """SELECT m FROM (SELECT md5(n::text)::uuid AS m FROM generate_series(1, 2000) n) s JOIN pg_dist_placement p
    ON p.shardid = get_shard_id_for_distribution_column('orders', m) WHERE p.groupid = $1 LIMIT 1"""
_ASKED = "SELECT 1 FROM orders WHERE merchant_id = $1 LIMIT 1"
# Citus runs this query on every node that it can reach, and returns its own error text for the others.
_SETTINGS = """SELECT nodename, nodeport, result FROM run_command_on_workers($$SELECT json_build_object(
    'fsync', current_setting('fsync'), 'full_page_writes', current_setting('full_page_writes'),
    'synchronous_commit', current_setting('synchronous_commit'),
    'max_prepared_transactions', current_setting('max_prepared_transactions'))$$) WHERE success"""
_METADATA = "SELECT hasmetadata FROM pg_dist_node WHERE groupid = $1 AND noderole = 'primary'"
# Parts of the errors of a node that is up, but does not let the service's role log in.
_SHUT = (
    "not permitted to log in", "authentication failed", "pg_hba.conf", "does not exist", "no password supplied",
    "permission denied",
)  # fmt: skip


async def require_serving(connection: Connection) -> list[Node]:
    """Raise UnsafeDatabase if the service cannot run on this cluster. Return the nodes that cannot be reached now.

    The session has the service's role. A database without Citus, or with Citus and without a cluster, is fine.
    """
    if not await has_citus(connection):
        return []
    await connection.execute(f"SET citus.node_connection_timeout = '{REACH_SECONDS}s'")
    nodes = [node for node in await all_nodes(connection) if node.has_shards]
    sharded = await is_sharded(connection)
    if not nodes and not sharded:
        return []
    await _require_distributed(connection)
    if await connection.fetchval("SHOW citus.use_secondary_nodes") != "never":
        raise _cannot("citus.use_secondary_nodes must be never, because Citus refuses writes otherwise")
    down = [node for node in nodes if not await _lets_in(connection, node)]
    for node in nodes:
        if node not in down and not await connection.fetchval(_METADATA, node.number):
            synced = f"SELECT start_metadata_sync_to_node('{node.host}', {node.port})"
            raise _cannot(f"the worker {node.name} lacks the metadata. As superuser, run: {synced}")
    await _require_settings(connection)
    return down


def _cannot(why: str) -> UnsafeDatabase:
    return UnsafeDatabase(f"The service cannot run on this Citus cluster: {why}. {HOW}")


async def _require_distributed(connection: Connection) -> None:
    rows = await connection.fetch("SELECT logicalrelid::text AS name FROM pg_dist_partition")
    there = {row["name"] for row in rows}
    missing = [name for name, place in PLACES.items() if place != COORDINATOR and name not in there]
    command = "As the owner of the tables, run: cuota migrate --citus"
    if missing:
        raise _cannot(f"{len(missing)} tables are not distributed (the first is {missing[0]}). {command}")
    functions = list((await unplaced(connection)).values())
    if functions:
        raise _cannot(
            f"{len(functions)} functions are not distributed (the first is {functions[0]}). {command}"
        )


async def _lets_in(connection: Connection, node: Node) -> bool:
    """Read from a shard of this node, as the service does. Return False if the node cannot be reached."""
    somebody = await connection.fetchval(_SOMEBODY, node.number)
    if somebody is None:
        # The node has no shard, so no merchant needs it.
        return True
    try:
        await connection.fetchrow(_ASKED, somebody)
    except asyncpg.PostgresError as problem:
        reason = str(problem).partition("FATAL:")[2].strip() or str(problem)
        if any(text in reason for text in _SHUT):
            role = await connection.fetchval("SELECT current_user")
            raise _cannot(
                f"the role {role} cannot read the shards of {node.name} ({' '.join(reason.split())}). Let the role log in from"
                " every node to every node"
            ) from None
        if isinstance(problem, LOST) or "connection" in reason:
            return False
        raise
    return True


async def _require_settings(connection: Connection) -> None:
    """Refuse a worker that could lose acknowledged data, or that cannot take part in a two-phase commit."""
    for row in await connection.fetch(_SETTINGS):
        where, found = f"{row['nodename']}:{row['nodeport']}", json.loads(row["result"])
        for name in ("fsync", "full_page_writes", "synchronous_commit"):
            if found[name] == "off":
                raise _cannot(f"the worker {where} has {name} = off and could lose payments. Set {name} = on")
        if found["max_prepared_transactions"] == "0":
            raise _cannot(f"the worker {where} has max_prepared_transactions = 0. Set it to max_connections")
