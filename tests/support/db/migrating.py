"""Helpers that migrate a database and query it."""

from __future__ import annotations

from typing import Any

import asyncpg

from cuota.db.migrate import migrate


async def migrated(where: dict[str, Any], environment: str = "sandbox") -> list[str]:
    connection = await asyncpg.connect(**where)
    try:
        return await migrate(connection, environment)
    finally:
        await connection.close()


async def ask(where: dict[str, Any], sql: str) -> Any:
    connection = await asyncpg.connect(**where)
    try:
        return await connection.fetchval(sql)
    finally:
        await connection.close()
