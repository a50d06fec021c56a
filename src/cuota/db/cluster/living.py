"""Reads the rows of all merchants for a page or a command of the operator, which says if the merchants of a node are missing."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import TypeVar
from uuid import UUID

from cuota.db.cluster.across import by_node
from cuota.db.cluster.narrow import narrow
from cuota.db.cluster.watch import unreachable
from cuota.db.hosts import NodeLost
from cuota.db.pool import GONE, Pool, Row

T = TypeVar("T")
# A statement that gets a list of merchants.
_NAMED = re.compile(r"merchant_id = ANY \(\$(\d+)::uuid\[\]\)")


class LivingNodes:
    """A session for reads over all merchants. If a node of a cluster is down, its merchants are left out.

    `left_out` has the numbers of these nodes (Citus's group ids) after a read. Do not use this session to read the rows of one merchant:
    if the merchant's node is down, it finds nothing. One request or command at a time uses it.
    """

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._living: list[UUID] | None = None
        self.left_out: list[int] = []

    async def fetch(self, sql: str, *values: object) -> list[Row]:
        """Return all rows."""
        return await self._read(self._pool.fetch, sql, *values)

    async def fetchrow(self, sql: str, *values: object) -> Row | None:
        """Return one row, or None."""
        return await self._read(self._pool.fetchrow, sql, *values)

    @property
    def notice(self) -> str | None:
        """Return what a person must know about these reads, or None if nothing is missing."""
        if not self.left_out:
            return None
        numbers = ", ".join(map(str, self.left_out))
        nodes, their = ("Node", "its") if len(self.left_out) == 1 else ("Nodes", "their")
        return f"{nodes} {numbers} of the database cannot be reached, so the data of {their} merchants is missing here."

    async def _read(self, read: Callable[..., Awaitable[T]], sql: str, *values: object) -> T:
        if self._living is None and self._pool.knows_silent:
            await self._look()
        if self._living is None:
            try:
                return await read(sql, *values)
            except GONE:
                if not self._pool.sharded:
                    raise
                # A lost session counts, too: the service closes a session on which Citus warns that a node has just died.
                await self._look()
        return await read(*self._of_living(sql, values))

    def _of_living(self, sql: str, values: tuple[object, ...]) -> tuple[object, ...]:
        """Return the statement and its values so that it reads only the merchants on living nodes."""
        living = self._living or []
        if named := _NAMED.search(sql):
            # Citus uses only one list of merchants to choose the nodes.
            number = int(named[1]) - 1
            some = [each for each in living if each in values[number]]  # type: ignore[operator]
            return sql, *values[:number], some, *values[number + 1 :]
        narrowed = narrow(sql, len(values) + 1)
        return (sql, *values) if narrowed == sql else (narrowed, *values, living)

    async def _look(self) -> None:
        """Find out which nodes are down, and which merchants are on the others."""
        self.left_out = [node.number for node in await unreachable(self._pool)]
        places = await by_node(self._pool)
        self._living = [
            each for node, merchants in places.items() if node not in self.left_out for each in merchants
        ]


async def find_one(pool: Pool, sql: str, *values: object) -> Row | None:
    """Return the one row that a statement over all merchants finds, or None.

    Raises NodeLost if nothing was found and the row may be on a node that is down.
    """
    every = LivingNodes(pool)
    row = await every.fetchrow(sql, *values)
    if row is None and every.left_out:
        raise NodeLost("the row may be on a node that cannot be reached")
    return row
