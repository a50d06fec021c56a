"""A database of its own on every node of a Citus cluster, which the caller has started."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import asyncpg

from cuota.db.citus import distribute
from cuota.db.migrate import migrate

# The workers that a database knows, the first one first.
REGISTERED = "SELECT nodename AS host, nodeport AS port FROM pg_dist_node WHERE groupid > 0 ORDER BY groupid"
_WORKERS = "SELECT node_name AS host, node_port AS port FROM citus_get_active_worker_nodes()"


def _moved(url: str, host: str, port: int, database: str) -> str:
    """The same URL with another host, port and database."""
    parts = urlsplit(url)
    user = parts.netloc.rpartition("@")[0]
    return parts._replace(
        netloc=f"{user}@{host}:{port}" if user else f"{host}:{port}", path=database
    ).geturl()


async def _run(url: str, *statements: str) -> None:
    connection = await asyncpg.connect(url)
    try:
        for sql in statements:
            await connection.execute(sql)
    finally:
        await connection.close()


@asynccontextmanager
async def blank_database(url: str) -> AsyncIterator[str]:
    """The URL, at the coordinator, of an empty database whose workers are registered."""
    parts, name = urlsplit(url), f"own_{secrets.token_hex(4)}"
    asked = await asyncpg.connect(url)
    workers = [(row["host"], row["port"]) for row in await asked.fetch(_WORKERS)]
    await asked.close()
    assert workers, f"The cluster of {url} has no workers: register them with citus_add_node."
    here = (parts.hostname or "localhost", parts.port or 5432)
    nodes = [here, *workers]
    for host, port in nodes:
        # Each node has a database of the cluster by the same name, from which another one can be made.
        await _run(
            _moved(url, host, port, parts.path),
            f"CREATE DATABASE {name}",
        )
        await _run(_moved(url, host, port, name), "CREATE EXTENSION citus")
    mine = _moved(url, *here, name)
    add = [f"SELECT citus_add_node('{host}', {port})" for host, port in workers]
    await _run(mine, f"SELECT citus_set_coordinator_host('{here[0]}', {here[1]})", *add)
    try:
        yield mine
    finally:
        for host, port in nodes:
            await _run(_moved(url, host, port, parts.path), f"DROP DATABASE {name} WITH (FORCE)")


@asynccontextmanager
async def cluster_database(url: str) -> AsyncIterator[str]:
    """The URL, at the coordinator, of a database that is migrated, and distributed over the workers."""
    async with blank_database(url) as mine:
        connection = await asyncpg.connect(mine)
        await migrate(connection, "sandbox")
        await distribute(connection)
        await connection.close()
        yield mine


def at_worker(url: str, host: str, port: int) -> str:
    """The same database at another node."""
    return _moved(url, host, port, urlsplit(url).path)
