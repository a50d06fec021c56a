"""Helpers that migrate a database and query it."""

from __future__ import annotations

from typing import Any

import asyncpg

from cuota.db.migrate import files, migrate


async def migrated(where: dict[str, Any], environment: str = "sandbox") -> list[str]:
    connection = await asyncpg.connect(**where)
    try:
        return await migrate(connection, environment)
    finally:
        await connection.close()


async def migrated_to(where: dict[str, Any], last: str) -> None:
    """Make a database of the release whose last migration is `last`."""
    connection = await asyncpg.connect(**where)
    try:
        await connection.execute(
            "CREATE TABLE migrations (name text PRIMARY KEY, applied_at timestamptz NOT NULL DEFAULT now())"
        )
        for name, sql in files():
            async with connection.transaction():
                await connection.execute(sql)
                await connection.execute("INSERT INTO migrations (name) VALUES ($1)", name)
            if name == last:
                break
        await connection.execute("INSERT INTO installation (environment) VALUES ('sandbox')")
    finally:
        await connection.close()


async def ask(where: dict[str, Any], sql: str) -> Any:
    connection = await asyncpg.connect(**where)
    try:
        return await connection.fetchval(sql)
    finally:
        await connection.close()
