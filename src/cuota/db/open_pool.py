"""Opens the pools of a process, as the service's own role."""

from __future__ import annotations

from functools import partial
from typing import Any
from uuid import UUID

import asyncpg

from cuota.db import nodes, row_security, service_role
from cuota.db.cluster.across import by_node
from cuota.db.cluster.guard import NodeGuard
from cuota.db.cluster.watch import unreachable
from cuota.db.entry import EntrySessions
from cuota.db.hosts import Honest, connect
from cuota.db.pool import HAS_CITUS, MOST_TOGETHER, ON_CITUS, SESSION, TOGETHER, Connection, Pool
from cuota.db.session import Session
from cuota.db.sharded_session import ClusterSession

# PostgreSQL 15 has no reserved_connections.
_ROOM = """SELECT current_setting('max_connections')::integer - current_setting('superuser_reserved_connections')::integer
    - coalesce(current_setting('reserved_connections', true)::integer, 0) AS room"""

# The coordinator keeps no connection to another node for a session with this setting. On a kept connection to a node that hangs, the
# question whether that node answers would hang, too.
_KEEPS_NONE = {"citus.max_cached_conns_per_worker": "0"}

# One session finds out which nodes do not answer, and one the places of the merchants.
ASKING = 2

# A session prepares each statement once, and PostgreSQL then plans it six times at most. By default asyncpg forgets a statement after five
# minutes, and the least used of a hundred: with about two hundred different statements, sessions prepared and planned some again and again.
STATEMENTS_KEPT = 500


async def open_pool(
    where: dict[str, Any], size: int, name: str = "cuota", *, entry_url: str | None = None
) -> Pool:
    """Open the pools of a process, as the service's own role. `name` is the application name of the sessions.

    `entry_url` is the address of a worker of the cluster for the statements of one merchant's orders.
    """
    first, service = await service_role.connect(where)
    try:
        takes = (await service_role.read(first)).takes
        secured = await row_security.is_on(first)
        sharded = await first.fetchval(HAS_CITUS)
    finally:
        await first.close()
    more = {"application_name": name} | ({"role": takes} if takes else {}) | (ON_CITUS if sharded else {})
    plain = ClusterSession if sharded else Honest
    kind = row_security.Narrowed if secured else plain
    guard = NodeGuard() if sharded else None
    pool = Pool(
        await _sessions(service, 1, size, {**SESSION, **more}, kind, guard),
        await _sessions(service, 0, MOST_TOGETHER, {**TOGETHER, **more}, kind, guard),
        await _sessions(service, 0, 1, {**SESSION, **more}, kind),
        await _sessions(service, 0, ASKING, {**SESSION, **more, **_KEEPS_NONE}, kind) if sharded else None,
        guard=guard,
    )
    if guard is not None:
        _begin(guard, pool)
    if entry_url is not None:
        # No session is opened yet, because the worker may be down.
        worker = {"dsn": entry_url}
        pool.enter_by(
            await _sessions(worker, 0, size, {**SESSION, **more}, kind, guard, at_worker=True),
            await _sessions(worker, 0, MOST_TOGETHER, {**TOGETHER, **more}, kind, guard, at_worker=True),
            EntrySessions if guard is None else partial(EntrySessions, is_silent=guard.entry_is_silent),
        )
    return pool


def _begin(guard: NodeGuard, pool: Pool) -> None:
    async def ask() -> frozenset[int]:
        return frozenset(node.number for node in await unreachable(pool))

    async def places() -> dict[UUID, int]:
        placed = await by_node(pool.asking)
        return {each: node for node, merchants in placed.items() for each in merchants}

    guard.begin(ask, places, pool.renew)


def most_sessions(size: int, *, sharded: bool) -> int:
    """Return how many sessions a process may open with a pool of this size, on a server or on the coordinator of a cluster."""
    return size + MOST_TOGETHER + 1 + (ASKING if sharded else 0)


async def room_for_sessions(session: Session) -> int:
    """Return how many sessions the server allows for roles that are not superusers."""
    row = await session.fetchrow(_ROOM)
    assert row is not None, "a SELECT without FROM returns one row"
    return int(row["room"])


async def _sessions(
    where: dict[str, Any],
    least: int,
    most: int,
    settings: dict[str, str],
    kind: type[Honest],
    guard: NodeGuard | None = None,
    *,
    at_worker: bool = False,
) -> asyncpg.Pool:
    """Open asyncpg's pool without the reset at each release.

    Our code resets each setting that it changes, and asyncpg's reset would take a fifth of a capture's time.
    """
    return await asyncpg.create_pool(
        **where,
        connect=connect if guard is None else partial(_connect_guarded, guard, at_worker=at_worker),
        connection_class=kind,
        min_size=least,
        max_size=most,
        max_inactive_connection_lifetime=300,
        statement_cache_size=STATEMENTS_KEPT,
        max_cached_statement_lifetime=0,
        server_settings=settings,
        reset=_no_reset,
    )


async def _connect_guarded(
    guard: NodeGuard, dsn: str | None = None, *, at_worker: bool, **more: Any
) -> Connection:
    session = await connect(dsn, **more)
    if at_worker:
        guard.entry_node = session.node = await session.fetchval(nodes.HERE)
    session.guard = guard
    return session


async def _no_reset(connection: Connection) -> None:
    del connection
