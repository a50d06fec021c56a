"""A database session that is terminated just after a commit, or just before a read. Only the first time."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from support.db.same_pool import SamePool
from support.own_service import Own


class _CutOnce(SamePool):
    def __init__(self, own: Own, sql: str) -> None:
        super().__init__(own.context.pool)
        self.own, self.sql, self.cut = own, sql, 0

    async def terminate(self, connection: Any) -> None:
        self.cut += 1
        async with self.own.owner() as owner:
            pid = connection.get_server_pid()
            assert await owner.fetchval("SELECT pg_terminate_backend($1::integer, 5000)", pid)


class CutCommits(_CutOnce):
    """The service's pool. The answer to the commit of a transaction with a statement that contains `sql` is lost."""

    @asynccontextmanager
    async def session(self) -> AsyncIterator[Any]:
        async with super().session() as connection:
            yield _CutConnection(self, connection)


class CutReads(_CutOnce):
    """The service's pool. The session of a statement that contains `sql` is lost before the statement runs."""

    async def fetchrow(self, sql: str, *values: object) -> Any:
        if self.cut or self.sql not in sql:
            return await super().fetchrow(sql, *values)
        async with self.session() as connection:
            await self.terminate(connection)
            return await connection.fetchrow(sql, *values)


class _CutConnection:
    def __init__(self, pool: CutCommits, connection: Any) -> None:
        self._pool, self._connection, self._ran = pool, connection, False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connection, name)

    async def fetchrow(self, sql: str, *values: object) -> Any:
        self._ran = self._ran or self._pool.sql in sql
        return await self._connection.fetchrow(sql, *values)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[None]:
        async with self._connection.transaction():
            yield
        if self._ran and not self._pool.cut:
            await self._pool.terminate(self._connection)
            await self._connection.fetchrow("SELECT 1")
