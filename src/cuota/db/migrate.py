"""Applies migrations: plain SQL files, forward only, each in its own transaction, under one advisory lock."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from importlib import resources

import asyncpg

from cuota.db import row_security
from cuota.db.lock_wait import LOCK_SECONDS, LockWait, with_locks
from cuota.db.locks import MIGRATE_LOCK
from cuota.db.nodes import is_sharded
from cuota.db.pool import LOST, Connection, UnsafeDatabase, require_durable
from cuota.db.script import statements_of

_TABLE = """
CREATE TABLE IF NOT EXISTS migrations (
    name       text PRIMARY KEY,
    applied_at timestamptz NOT NULL DEFAULT now()
)
"""
# Citus refuses triggers without this setting. Our triggers only read rows of their own order, which are on the same shard.
TRIGGERS = "SET citus.enable_unsafe_triggers = on"
# A migration may change a distributed table and a table that is on every node in the same transaction.
_ONE_BY_ONE = "SET citus.multi_shard_modify_mode = sequential"
# Without the first setting, Citus does not send the second one to the nodes, and a statement waits there without a limit.
_LOCKS_ON_NODES = (
    "SET LOCAL citus.propagate_set_commands = local",
    f"SET LOCAL lock_timeout = '{LOCK_SECONDS}s'",
)
# Called with the number of applied migrations, the total, and a text about the current step.
OnProgress = Callable[[float, float | None, str], None]


def untold(done: float, total: float | None, note: str) -> None:
    """Ignore the progress."""
    del done, total, note


def files() -> list[tuple[str, str]]:
    """Return the name and SQL of every migration of this release, in order."""
    folder = resources.files("cuota.db.migrations")
    found = [item for item in folder.iterdir() if item.name.endswith(".sql")]
    return [
        (item.name.removesuffix(".sql"), item.read_text())
        for item in sorted(found, key=lambda item: item.name)
    ]


async def migrate(
    connection: Connection, environment: str, told: OnProgress = untold, wait: LockWait | None = None
) -> list[str]:
    """Apply the missing migrations and return their names. Raises UnsafeDatabase.

    With `wait`, a migration waits some minutes for the locks that it needs.
    """
    await require_durable(connection)
    await connection.execute("SELECT pg_advisory_lock($1)", MIGRATE_LOCK)
    try:
        await connection.execute(f"SET lock_timeout = '{LOCK_SECONDS}s'")
        await connection.execute("SET client_min_messages = warning")
        await connection.execute(_TABLE)
        done = {row["name"] for row in await connection.fetch("SELECT name FROM migrations")}
        return await _apply(connection, done, environment, told, wait)
    except LOST:
        raise
    except asyncpg.PostgresError as problem:
        raise UnsafeDatabase(f"Cannot migrate the database: {problem}. {_advice(problem)}") from problem
    finally:
        if not connection.is_closed():
            await connection.execute("SELECT pg_advisory_unlock($1)", MIGRATE_LOCK)


def _advice(problem: asyncpg.PostgresError) -> str:
    if isinstance(problem, asyncpg.InsufficientPrivilegeError):
        return "Migrate as the role that owns the tables: CUOTA_DATABASE_OWNER_URL, or --database of cuota migrate."
    if isinstance(problem, asyncpg.SyntaxOrAccessError):
        # Tables of another program have the names of ours.
        return "Set CUOTA_DATABASE_URL to a database that only Cuota uses."
    return "Correct the cause and start the migration again: it continues with the migration that failed."


async def _apply(
    connection: Connection, done: set[str], environment: str, told: OnProgress, wait: LockWait | None
) -> list[str]:
    ours = files()
    unknown = done - {name for name, _ in ours}
    if unknown:
        newest = max(unknown)
        raise UnsafeDatabase(
            f"A newer release has migrated this database (it has {newest}). Start that release."
        )
    if done:
        # Check this before any change, because the database may belong to another environment.
        await claim(connection, environment)
    missing = [(name, sql) for name, sql in ours if name not in done]
    sharded = await is_sharded(connection)
    if sharded:
        await connection.execute(f"{TRIGGERS}; {_ONE_BY_ONE}")
    for count, (name, sql) in enumerate(missing):
        told(count, len(missing), name)
        # Citus sends the text of a change to every shard, and refuses a text with several statements.
        statements = [*_LOCKS_ON_NODES, *statements_of(sql)] if sharded else [sql]
        await with_locks(
            connection, f"The migration {name}", partial(_apply_one, connection, name, statements), wait
        )
    if await row_security.is_on(connection):
        # The migrations may have added tables, also those of an earlier start that was killed here.
        secure = partial(row_security.turn, connection, on=True)
        await with_locks(connection, "Row-level security of the new tables", secure, wait)
    await claim(connection, environment)
    return [name for name, _ in missing]


async def _apply_one(connection: Connection, name: str, statements: Sequence[str]) -> None:
    async with connection.transaction():
        for statement in statements:
            await connection.execute(statement)
        await connection.execute("INSERT INTO migrations (name) VALUES ($1)", name)


async def claim(connection: Connection, environment: str) -> None:
    """Bind the database to one environment. Raises UnsafeDatabase if it belongs to the other environment."""
    await connection.execute(
        "INSERT INTO installation (environment) VALUES ($1) ON CONFLICT DO NOTHING", environment
    )
    owner = await connection.fetchval("SELECT environment FROM installation")
    if owner != environment:
        raise UnsafeDatabase(
            f"This database belongs to {owner}, but CUOTA_ENVIRONMENT is {environment}. Use a separate database for {environment}."
        )
