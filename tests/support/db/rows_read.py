"""Counts the rows that a statement reads while the planner has no statistics, as after a restore."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from cuota.db.pool import SESSION
from cuota.db.session import Session
from support.own_service import Own

# A row counts each time that a statement reads it.
_READ = "SELECT coalesce(sum(coalesce(idx_tup_fetch, 0) + seq_tup_read), 0)::bigint FROM pg_stat_user_tables"
_FORGET = (
    "DELETE FROM pg_statistic",
    """UPDATE pg_class SET reltuples = -1, relpages = 0
        WHERE relkind IN ('r', 'i') AND relnamespace = 'public'::regnamespace""",
)


async def rows_read(own: Own, sql: str, *values: object) -> int:
    """Delete the statistics, run a statement with the settings of the service, and return how many rows it read in all tables."""
    async with own.owner() as connection:
        for statement in _FORGET:
            await connection.execute(statement)
    before = await _total(own)
    async with own.owner() as connection:
        for name, value in SESSION.items():
            await connection.fetchval("SELECT set_config($1, $2, false)", name, value)
        await connection.fetch(sql, *values)
        await connection.fetchval("SELECT pg_stat_force_next_flush()")
        await connection.fetchval("SELECT 1")
    return await _total(own) - before


async def rows_read_by(own: Own, read: Callable[[Session], Awaitable[object]]) -> int:
    """Delete the statistics, call `read` with a session of the service, and return how many rows it read in all tables."""
    async with own.owner() as connection:
        for statement in _FORGET:
            await connection.execute(statement)
    before = await _total(own)
    async with own.context.pool.session() as session:
        await read(session)
        await session.fetchval("SELECT pg_stat_force_next_flush()")
        await session.fetchval("SELECT 1")
    return await _total(own) - before


async def _total(own: Own) -> int:
    async with own.owner() as connection:
        return int(await connection.fetchval(_READ))
