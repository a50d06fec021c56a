"""Reads the nodes of a Citus cluster, and which of them this session's node can reach."""

from __future__ import annotations

from dataclasses import dataclass

from cuota.db.pool import HAS_CITUS, Connection, UnsafeDatabase

# How long to wait for a node that does not answer.
REACH_SECONDS = 5
_SHARDED = "SELECT EXISTS (SELECT FROM pg_dist_partition WHERE partmethod = 'h')"
HERE = "SELECT groupid FROM pg_dist_local_group"
_NODES = """SELECT groupid, nodename, nodeport, shouldhaveshards, groupid = (SELECT groupid FROM pg_dist_local_group) AS here
    FROM pg_dist_node WHERE noderole = 'primary' AND isactive ORDER BY groupid"""
_REACHED = "SELECT citus_check_connection_to_node($1, $2)"
HOW = "See docs/scaling.md, Sharded by merchant."


@dataclass(frozen=True, slots=True)
class Node:
    """A node of the cluster. `number` is Citus's group id; the coordinator has 0. `here` is the node of this session."""

    number: int
    host: str
    port: int
    has_shards: bool
    here: bool

    @property
    def name(self) -> str:
        """The node's address, for the operator."""
        return f"{self.host}:{self.port}"


async def has_citus(connection: Connection) -> bool:
    """Return whether the extension exists in this database."""
    return bool(await connection.fetchval(HAS_CITUS))


async def all_nodes(connection: Connection) -> list[Node]:
    """Return the active nodes that accept writes, the coordinator first."""
    return [Node(*row) for row in await connection.fetch(_NODES)]


async def unreachable(connection: Connection) -> list[Node]:
    """Return the nodes to which this session's node cannot connect as this session's role."""
    await connection.execute(f"SET citus.node_connection_timeout = '{REACH_SECONDS}s'")
    nodes = [node for node in await all_nodes(connection) if not node.here]
    return [node for node in nodes if not await connection.fetchval(_REACHED, node.host, node.port)]


async def is_sharded(connection: Connection) -> bool:
    """Return whether tables of this database are distributed."""
    return await has_citus(connection) and bool(await connection.fetchval(_SHARDED))


async def refuse_worker(connection: Connection) -> None:
    """Raise UnsafeDatabase if this session's node is a worker of a cluster."""
    if await has_citus(connection) and await connection.fetchval(HERE) != 0:
        nodes = await all_nodes(connection)
        coordinator = next((node.name for node in nodes if node.number == 0), "the coordinator")
        raise UnsafeDatabase(
            f"This database is a worker of a Citus cluster. Give the address of the coordinator, {coordinator}. {HOW}"
        )


async def require_coordinator(connection: Connection) -> None:
    """Raise UnsafeDatabase unless this is the coordinator of a cluster whose workers all answer."""
    if not await has_citus(connection):
        raise UnsafeDatabase(
            "The database does not have Citus. On the coordinator, as superuser, run: CREATE EXTENSION citus; see docs/scaling.md."
        )
    await refuse_worker(connection)
    if not any(node.has_shards for node in await all_nodes(connection)):
        raise UnsafeDatabase(
            "The Citus cluster has no worker. On the coordinator, as superuser, run this for each worker, then try again:"
            f" SELECT citus_add_node('HOST', PORT); {HOW}"
        )
    down = await unreachable(connection)
    if down:
        names = ", ".join(node.name for node in down)
        raise UnsafeDatabase(
            f"The coordinator cannot connect to {names}. Nothing was changed. Start that node, or allow the coordinator to connect, then"
            " try again."
        )
