"""Connections. Every session has short limits, runs as `cuota_app`, and waits at most half a second for a place."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Any, TypeAlias

import asyncpg

from cuota.core.refusal import Code, Refused

Connection: TypeAlias = asyncpg.Connection
Row: TypeAlias = asyncpg.Record

WAIT_SECONDS = 0.5
SESSION = {
    "lock_timeout": "2s",
    "statement_timeout": "5s",
    "idle_in_transaction_session_timeout": "5s",
    "timezone": "UTC",
    "application_name": "cuota",
}
# What a session may lose by a crash or restart of the server under it, in the words of asyncpg.
LOST = (
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    # The driver's own state machine, used between a server's last word on an idle session and its end.
    asyncpg.InternalClientError,
    asyncpg.CannotConnectNowError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    ConnectionError,
)
GONE = (*LOST, OSError)
# What a session refuses by its own limits, or a server that is no longer the primary: nothing was applied.
BUSY = (
    asyncpg.LockNotAvailableError,
    asyncpg.QueryCanceledError,
    asyncpg.DeadlockDetectedError,
    asyncpg.TooManyConnectionsError,
    asyncpg.ReadOnlySQLTransactionError,
)


class UnsafeDatabase(Exception):  # noqa: N818 - the fact that stops the start
    """The database could lose what it acknowledged, or is not ours."""


class Pool:
    """A pool of sessions. `where` is what asyncpg.connect takes."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool

    @contextlib.asynccontextmanager
    async def session(self) -> AsyncIterator[Connection]:
        """One session; raises Refused(unavailable) when none is free in time: then nothing was applied."""
        try:
            connection = await self._pool.acquire(timeout=WAIT_SECONDS)
        except TimeoutError:
            raise unavailable(
                "The service is busy and did not start on this request. Try again shortly."
            ) from None
        except (*GONE, asyncpg.TooManyConnectionsError):
            raise unavailable(
                "The database cannot be reached; nothing was applied. Try again shortly."
            ) from None
        try:
            yield connection
        finally:
            await self._pool.release(connection)

    async def fetchrow(self, sql: str, *values: object) -> Row | None:
        """One row or None, in one round trip."""
        async with self.session() as connection:
            return await connection.fetchrow(sql, *values)

    async def fetch(self, sql: str, *values: object) -> list[Row]:
        """All rows, in one round trip."""
        async with self.session() as connection:
            rows: list[Row] = await connection.fetch(sql, *values)
            return rows

    async def execute(self, sql: str, *values: object) -> str:
        """Run one statement; answers its command tag."""
        async with self.session() as connection:
            tag: str = await connection.execute(sql, *values)
            return tag

    def sizes(self) -> tuple[int, int]:
        """Sessions open, and of them idle."""
        return self._pool.get_size(), self._pool.get_idle_size()

    async def close(self) -> None:
        """Wait for what runs, then close every session."""
        await self._pool.close()


def unavailable(message: str, retry_after: int = 1) -> Refused:
    """503: the caller may try again after so many seconds."""
    return Refused(Code.UNAVAILABLE, message, retry_after=retry_after)


async def open_pool(where: dict[str, Any], size: int) -> Pool:
    """Open a pool as the service's own role.

    The reset that asyncpg sends at each release is left out: sessions are never changed, and it would be a
    fifth of a capture's time.
    """
    pool = await asyncpg.create_pool(
        **where,
        min_size=1,
        max_size=size,
        max_inactive_connection_lifetime=300,
        server_settings={**SESSION, "role": "cuota_app"},
        reset=_no_reset,
    )
    return Pool(pool)


async def _no_reset(connection: Connection) -> None:
    del connection


async def require_durable(connection: Connection) -> None:
    """Refuse a database that acknowledges what it may lose."""
    for name in ("fsync", "full_page_writes", "synchronous_commit"):
        value = await connection.fetchval("SELECT current_setting($1)", name)
        if value == "off":
            raise UnsafeDatabase(f"The database has {name} = off: it could lose payments. Set {name} = on.")
