"""Applies migrations: plain SQL files, forward only, each in its own transaction, under one advisory lock."""

from __future__ import annotations

from collections.abc import Callable
from importlib import resources

import asyncpg

from cuota.db import row_security
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


async def migrate(connection: Connection, environment: str, told: OnProgress = untold) -> list[str]:
    """Apply the missing migrations and return their names. Raises UnsafeDatabase."""
    await require_durable(connection)
    await connection.execute("SELECT pg_advisory_lock($1)", MIGRATE_LOCK)
    try:
        await connection.execute("SET lock_timeout = '2s'")
        await connection.execute("SET client_min_messages = warning")
        await connection.execute(_TABLE)
        done = {row["name"] for row in await connection.fetch("SELECT name FROM migrations")}
        return await _apply(connection, done, environment, told)
    except LOST:
        raise
    except asyncpg.PostgresError as problem:
        # The cause may be another program's tables, missing rights, or a lock. The database's own text says which.
        raise UnsafeDatabase(
            f"Cannot migrate the database: {problem}. Set CUOTA_DATABASE_URL to a database that only Cuota uses."
        ) from problem
    finally:
        if not connection.is_closed():
            await connection.execute("SELECT pg_advisory_unlock($1)", MIGRATE_LOCK)


async def _apply(connection: Connection, done: set[str], environment: str, told: OnProgress) -> list[str]:
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
        async with connection.transaction():
            # Citus sends the text of a change to every shard, and refuses a text with several statements.
            for statement in statements_of(sql) if sharded else [sql]:
                await connection.execute(statement)
            await connection.execute("INSERT INTO migrations (name) VALUES ($1)", name)
    if missing and await row_security.is_on(connection):
        # The migrations may have added tables.
        await row_security.turn(connection, on=True)
    await claim(connection, environment)
    return [name for name, _ in missing]


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
