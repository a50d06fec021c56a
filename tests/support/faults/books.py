"""Lets the harness read the service's database directly, as its owner."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import asyncpg

from cuota.db.embedded.server import open_embedded

COMES_BACK_SECONDS = 70.0
AWAY = (
    asyncpg.PostgresConnectionError, asyncpg.InterfaceError, asyncpg.CannotConnectNowError, OSError,
    asyncpg.AdminShutdownError, asyncpg.CrashShutdownError, asyncpg.InternalClientError,
)  # fmt: skip


class Books:
    """A separate session for queries. If the session is lost, it is opened again, and the query is
    repeated."""

    def __init__(self, where: dict[str, Any]) -> None:
        self.where = where
        self._runner = asyncio.Runner()
        self._connection: asyncpg.Connection | None = None

    def rows(self, sql: str, *values: object) -> list[asyncpg.Record]:
        until = time.monotonic() + COMES_BACK_SECONDS
        while True:
            try:
                return self._runner.run(self._rows(sql, values))
            except AWAY:
                self._connection = None
                if time.monotonic() > until:
                    raise
                time.sleep(0.1)

    def one(self, sql: str, *values: object) -> Any:
        found = self.rows(sql, *values)
        return found[0][0] if found else None

    async def _rows(self, sql: str, values: tuple[object, ...]) -> list[asyncpg.Record]:
        if self._connection is None or self._connection.is_closed():
            self._connection = await asyncpg.connect(**self.where, timeout=5)
        found: list[asyncpg.Record] = await self._connection.fetch(sql, *values)
        return found

    def close(self) -> None:
        if self._connection is not None:
            self._connection.terminate()
        self._runner.close()


@contextlib.contextmanager
def books(data: Path) -> Iterator[Books]:
    """Open the embedded database in this folder. It runs until the end of the block."""
    with open_embedded(data) as embedded:
        opened = Books(dict(embedded.dsn_kwargs))
        try:
            yield opened
        finally:
            opened.close()
