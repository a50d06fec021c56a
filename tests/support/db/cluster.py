"""Makes databases on every node of a Citus cluster that the caller has started."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any
from urllib.parse import unquote, urlsplit

import asyncpg

from cuota.db.citus import distribute
from cuota.db.migrate import migrate

# The workers that are registered in a database, in the order of their registration.
REGISTERED = "SELECT nodename AS host, nodeport AS port FROM pg_dist_node WHERE groupid > 0 ORDER BY groupid"
_WORKERS = "SELECT node_name AS host, node_port AS port FROM citus_get_active_worker_nodes() ORDER BY 1, 2"
# The key of the advisory lock with which test processes take turns.
_TURN = 18_700
# Citus keeps a session of its own in each database. A template must have none.
_CLOSE = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{0}'"


@dataclass(frozen=True)
class Nodes:
    """The nodes of a cluster. The coordinator is the first; `url` names a database of the cluster there."""

    url: str
    places: tuple[tuple[str, int], ...]

    def where(self, database: str, node: int = 0) -> dict[str, Any]:
        """Return the arguments of asyncpg.connect for a database on one node, as superuser."""
        parts, (host, port) = urlsplit(self.url), self.places[node]
        found = {"host": host, "port": port, "user": parts.username, "database": database}
        return found | ({"password": unquote(parts.password)} if parts.password else {})

    async def everywhere(self, database: str, *statements: str) -> None:
        """Run statements on each node."""

        async def run(node: int) -> None:
            connection = await asyncpg.connect(**self.where(database, node))
            try:
                for sql in statements:
                    await connection.execute(sql)
            finally:
                await connection.close()

        await asyncio.gather(*map(run, range(len(self.places))))

    @property
    def _first(self) -> str:
        """Return the database that each node has, and from which others can be created."""
        return urlsplit(self.url).path.removeprefix("/")

    async def make_blank(self, name: str) -> None:
        """Create an empty database in which the workers are registered."""
        await self.everywhere(self._first, f"CREATE DATABASE {name}")
        await self.everywhere(name, "CREATE EXTENSION citus")
        (host, port), *workers = self.places
        connection = await asyncpg.connect(**self.where(name))
        await connection.execute(f"SELECT citus_set_coordinator_host('{host}', {port})")
        for worker, at in workers:
            await connection.execute(f"SELECT citus_add_node('{worker}', {at})")
        await connection.close()

    async def make(self, name: str) -> None:
        """Create a database that is migrated, and distributed over the workers.

        Test processes take turns: a migration changes roles, which all databases share, and PostgreSQL refuses to change a role
        twice at the same moment.
        """
        turn = await asyncpg.connect(**self.where(self._first))
        await turn.execute(f"SELECT pg_advisory_lock({_TURN})")
        try:
            await self.make_blank(name)
            connection = await asyncpg.connect(**self.where(name))
            await migrate(connection, "sandbox")
            await distribute(connection)
            await connection.close()
        finally:
            await turn.close()

    async def close(self, name: str) -> None:
        """Refuse all connections to a database, so that it can be copied."""
        await self.everywhere(self._first, f"ALTER DATABASE {name} ALLOW_CONNECTIONS false")
        while True:
            await self.everywhere(self._first, _CLOSE.format(name))
            connection = await asyncpg.connect(**self.where(self._first))
            left = await connection.fetchval("SELECT count(*) FROM pg_stat_activity WHERE datname = $1", name)
            await connection.close()
            if not left:
                return

    async def copy(self, template: str, name: str) -> None:
        """Copy a closed database on each node. The same nodes are registered in the copies."""
        await self.everywhere(self._first, f"CREATE DATABASE {name} TEMPLATE {template}")

    async def drop(self, name: str) -> None:
        """Drop a database on each node. Try once more if Citus's own session is just starting and cannot be
        ended yet."""
        drop = f"DROP DATABASE IF EXISTS {name} WITH (FORCE)"
        try:
            await self.everywhere(self._first, drop)
        except asyncpg.ObjectInUseError:
            await asyncio.sleep(2)
            await self.everywhere(self._first, drop)


async def nodes_of(url: str) -> Nodes:
    """Ask the coordinator for the nodes of its cluster."""
    parts = urlsplit(url)
    asked = await asyncpg.connect(url)
    workers = [(row["host"], row["port"]) for row in await asked.fetch(_WORKERS)]
    await asked.close()
    assert workers, f"The cluster of {url} has no workers: register them with citus_add_node."
    return Nodes(url, ((parts.hostname or "localhost", parts.port or 5432), *workers))


@asynccontextmanager
async def blank_database(url: str) -> AsyncIterator[str]:
    """Yield the URL, at the coordinator, of an empty database whose workers are registered."""
    nodes, name = await nodes_of(url), f"own_{secrets.token_hex(4)}"
    await nodes.make_blank(name)
    try:
        yield urlsplit(url)._replace(path=name).geturl()
    finally:
        await nodes.drop(name)


@asynccontextmanager
async def cluster_database(url: str) -> AsyncIterator[str]:
    """Yield the URL, at the coordinator, of a database that is migrated, and distributed over the workers."""
    nodes, name = await nodes_of(url), f"own_{secrets.token_hex(4)}"
    try:
        await nodes.make(name)
        yield urlsplit(url)._replace(path=name).geturl()
    finally:
        await nodes.drop(name)


def at_worker(url: str, host: str, port: int) -> str:
    """Return the URL of the same database on another node."""
    parts = urlsplit(url)
    user = parts.netloc.rpartition("@")[0]
    return parts._replace(netloc=f"{user}@{host}:{port}" if user else f"{host}:{port}").geturl()
