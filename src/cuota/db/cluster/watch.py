"""Finds the nodes of a Citus cluster that cannot be reached, for the readiness check."""

from __future__ import annotations

import asyncio
import logging
import time
from weakref import WeakKeyDictionary

from cuota.core.refusal import Refused
from cuota.db.nodes import Node
from cuota.db.pool import BUSY, GONE, Pool

# Load balancers send many requests. The nodes are checked only once in this time, for all requests.
EVERY_SECONDS = 1.0
# A request waits this long for a check. That is enough to find a node that refuses connections. A node that does not answer at
# all is reported to a later request.
PATIENCE_SECONDS = 0.3
_UNREACHABLE = """SELECT groupid, nodename, nodeport, shouldhaveshards, false FROM pg_dist_node
    WHERE noderole = 'primary' AND isactive AND groupid <> (SELECT groupid FROM pg_dist_local_group)
        AND NOT citus_check_connection_to_node(nodename, nodeport) ORDER BY groupid"""
_WITH_SHARDS = (
    "SELECT count(*) AS nodes FROM pg_dist_node WHERE noderole = 'primary' AND isactive AND shouldhaveshards"
)
_ASKING: WeakKeyDictionary[Pool, asyncio.Task[list[Node]]] = WeakKeyDictionary()
log = logging.getLogger("cuota.cluster")


async def unreachable(pool: Pool) -> list[Node]:
    """Return the nodes to which the coordinator cannot connect now. Calls at the same moment share one query."""
    asking = _ASKING.get(pool)
    if asking is None or asking.done():
        asking = _ASKING[pool] = asyncio.create_task(_ask(pool))
    return await asyncio.shield(asking)


async def _ask(pool: Pool) -> list[Node]:
    return [Node(*found) for found in await pool.asking.fetch(_UNREACHABLE)]


class NodeWatch:
    """Remembers which nodes could not be reached at the last check."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._asked_at = 0.0
        self._asking: asyncio.Task[None] | None = None
        self._down: list[Node] = []
        self._holders = 0

    async def down(self) -> list[int]:
        """Return the numbers of the unreachable nodes. On plain PostgreSQL, there are none."""
        if not self._pool.sharded:
            return []
        if self._asking is None and time.monotonic() - self._asked_at >= EVERY_SECONDS:
            self._asking = asyncio.create_task(self._ask())
        if self._asking is not None:
            await asyncio.wait({self._asking}, timeout=PATIENCE_SECONDS)
        return [node.number for node in self._down]

    @property
    def nobody_served(self) -> bool:
        """Return whether all nodes with merchants' rows are unreachable."""
        return 0 < self._holders <= sum(node.has_shards for node in self._down)

    async def _ask(self) -> None:
        before = {node.name for node in self._down}
        try:
            row = await self._pool.fetchrow(_WITH_SHARDS)
            self._holders = 0 if row is None else row["nodes"]
            self._down = await unreachable(self._pool)
        except (Refused, *GONE, *BUSY) as problem:
            log.warning("nodes not asked", extra={"facts": {"problem": type(problem).__name__}})
        finally:
            self._asked_at, self._asking = time.monotonic(), None
        after = {node.name for node in self._down}
        for name in sorted(after - before):
            log.warning("node cannot be reached", extra={"facts": {"node": name}})
        for name in sorted(before - after):
            log.warning("node can be reached again", extra={"facts": {"node": name}})
