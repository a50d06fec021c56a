"""Sessions that wait for each other's locks, in an order that the test decides."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import asyncpg

_THAT_WAIT = "FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
WAITING = f"SELECT count(*) {_THAT_WAIT}"
# A canceled statement fails with the same error as a statement that reached its time limit.
CANCEL = f"SELECT pg_cancel_backend(pid) {_THAT_WAIT}"
_ON_CITUS = "SELECT count(*) > 0 FROM pg_extension WHERE extname = 'citus'"
# On a Citus cluster, a call waits on the node that has the row.
_ON_ALL_NODES = "SELECT sum(result::integer) FROM run_command_on_all_nodes($1)"


async def count_waiting(connection: asyncpg.Connection) -> int:
    """Return how many sessions of this database wait for a lock, on any node."""
    on_citus = await connection.fetchval(_ON_CITUS)
    return int(
        await connection.fetchval(_ON_ALL_NODES, WAITING) if on_citus else await connection.fetchval(WAITING)
    )


class Holder:
    """A transaction of the database's owner that holds locks, and a second session that sees which sessions wait."""

    def __init__(self, holding: asyncpg.Connection, watching: asyncpg.Connection) -> None:
        self._holding = holding
        self._watching = watching

    async def run(self, sql: str, *values: object) -> Any:
        """Run a statement in the transaction. It may wait for a lock."""
        return await self._holding.fetch(sql, *values)

    async def waiting(self) -> int:
        """Return how many sessions of this database wait for a lock, on any node."""
        return await count_waiting(self._watching)

    async def until_waits(self, acting: asyncio.Future[Any], count: int = 1) -> None:
        """Return as soon as `count` sessions of this database wait for a lock. `acting` must not end before that.

        The second session has no transaction: inside one, PostgreSQL shows only the sessions that existed at the first query.
        """
        while await self.waiting() < count:
            assert not acting.done(), f"nothing waited for a lock: {acting}"
            await asyncio.sleep(0.01)

    async def until_done(self, acting: asyncio.Future[Any]) -> Any:
        """Return the result of `acting`. Meanwhile, cancel each statement that waits for a lock, so that the test does not
        wait for its time limit."""
        while not acting.done():
            await self._watching.execute(CANCEL)
            await asyncio.wait([acting], timeout=0.02)
        return await acting


@asynccontextmanager
async def holder(where: dict[str, Any]) -> AsyncIterator[Holder]:
    """Open a transaction that ends with the block, and is committed.

    PostgreSQL never ends this transaction to resolve a deadlock: only a session that has waited for deadlock_timeout looks for
    deadlocks, and here that timeout is ten minutes. So another session must be the last one to begin waiting.
    """
    holding, watching = await asyncpg.connect(**where), await asyncpg.connect(**where)
    try:
        await holding.execute("SET deadlock_timeout = '10min'")
        async with holding.transaction():
            yield Holder(holding, watching)
    finally:
        await holding.close()
        await watching.close()


async def deadlocked(
    where: dict[str, Any], act: Callable[[], Awaitable[Any]], first: str, middle: str, last: str
) -> Any:
    """Make `act` deadlock. PostgreSQL resolves the deadlock by ending the statement of `act`. Return the result of `act`.

    `act` locks the rows of the three statements in this order. It waits for `middle` until another transaction, which holds
    `last`, waits for `first`. So `act` is the last one to begin waiting.
    """
    async with holder(where) as other:
        await other.run(last)
        async with holder(where) as between:
            await between.run(middle)
            acting = asyncio.ensure_future(act())
            await between.until_waits(acting)
            closing = asyncio.ensure_future(other.run(first))
            await between.until_waits(acting, 2)
        await closing
    return await acting
