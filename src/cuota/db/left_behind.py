"""Distributes tables that already have rows, and removes the old rows that stay on the coordinator."""

from __future__ import annotations

from cuota.db import workers
from cuota.db.nodes import HOW
from cuota.db.pool import Connection, UnsafeDatabase

# A deferred trigger would run while the rows are copied, on a node that does not have the table yet.
_DEFERRED = """SELECT tgname AS name, pg_get_triggerdef(oid) AS definition FROM pg_trigger
    WHERE tgrelid = $1::text::regclass AND NOT tgisinternal AND tgdeferrable"""
# Citus copies the rows to the shards, and leaves the old rows in the coordinator's own table, where no statement sees them.
# pg_relation_size returns the size of this node's own table only.
_LEFT_BEHIND = """SELECT logicalrelid::text AS name FROM pg_dist_partition
    WHERE partmethod <> 'n' OR repmodel = 't' ORDER BY 1"""
_HAS_ROWS = "SELECT pg_relation_size($1::text::regclass) > 0"
_REMOVE = "SELECT truncate_local_data_after_distributing_table($1::text::regclass)"


async def require_stopped(connection: Connection) -> None:
    """Raise UnsafeDatabase while a service uses the tables that are about to be distributed."""
    alive = await workers.count_alive(connection)
    if alive:
        raise UnsafeDatabase(
            f"The service is running on this database ({alive} processes of serve or work). Stop it before the tables are"
            f" distributed for the first time. No table was distributed. {HOW}"
        )


async def distribute_table(connection: Connection, table: str, sql: str) -> None:
    """Distribute one table with its rows. Deferred triggers are dropped before, and created again after, in one transaction."""
    async with connection.transaction():
        triggers = await connection.fetch(_DEFERRED, table)
        for trigger in triggers:
            await connection.execute(f'DROP TRIGGER "{trigger["name"]}" ON {table}')
        await connection.execute(sql)
        for trigger in triggers:
            await connection.execute(trigger["definition"])


async def remove_left_behind(connection: Connection) -> list[str]:
    """Remove the rows that stayed in the coordinator's own tables. Return the names of these tables."""
    named = [row["name"] for row in await connection.fetch(_LEFT_BEHIND)]
    found = [name for name in named if await connection.fetchval(_HAS_ROWS, name)]
    if not found:
        return []
    async with connection.transaction():
        # From here on, a statement changes only this node's own table, and no shard.
        await connection.execute("SET LOCAL citus.enable_ddl_propagation = off")
        # Triggers forbid TRUNCATE of the history tables. The rows are on the shards by now.
        for name in found:
            await connection.execute(f"ALTER TABLE {name} DISABLE TRIGGER USER")
        for name in found:
            await connection.fetchval(_REMOVE, name)
        for name in found:
            await connection.execute(f"ALTER TABLE {name} ENABLE TRIGGER USER")
    return found
