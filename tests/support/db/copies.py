"""Makes a separate database for one test, copied from another database of the same server."""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import asyncpg

if TYPE_CHECKING:
    from cuota.db.embedded.server import Embedded


async def copy_database(embedded: Embedded, source: str, name: str) -> None:
    """Create the database `name` as a copy of `source`, which nobody may be using."""
    await _on_the_server(embedded, f"CREATE DATABASE {name} TEMPLATE {source} STRATEGY file_copy")


async def drop_database(embedded: Embedded, name: str) -> None:
    """Drop a database, even if somebody uses it."""
    await _on_the_server(embedded, f"DROP DATABASE {name} WITH (FORCE)")


@asynccontextmanager
async def copied_database(embedded: Embedded, source: str) -> AsyncIterator[dict[str, object]]:
    """Copy the database `source`, yield the arguments of asyncpg.connect (as the owner), and drop the copy at
    the end."""
    name = f"copy_{secrets.token_hex(4)}"
    await copy_database(embedded, source, name)
    try:
        yield {**embedded.dsn_kwargs, "database": name}
    finally:
        await drop_database(embedded, name)


async def _on_the_server(embedded: Embedded, statement: str) -> None:
    connection = await asyncpg.connect(**{**embedded.dsn_kwargs, "database": "postgres"})
    try:
        await connection.execute(statement)
    finally:
        await connection.close()
