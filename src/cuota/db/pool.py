"""Connections. Every session has short limits, the rights of `cuota_app`, and waits at most half a second for a place."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any, TypeAlias, TypeVar
from uuid import UUID

import asyncpg

from cuota.core.refusal import Code, Refused
from cuota.db import row_security, service_role
from cuota.db.gathered import Gathered, Gatherer
from cuota.db.hosts import SILENT_SECONDS, Honest, connect

Connection: TypeAlias = asyncpg.Connection
Row: TypeAlias = asyncpg.Record

QueryT = TypeVar("QueryT")
ResultT = TypeVar("ResultT")

WAIT_SECONDS = 0.5
# A new session takes several round trips, between which a busy process does other things.
CONNECT_SECONDS = 2.0
LOCK_SECONDS = 2
STATEMENT_SECONDS = 5
# A server that works refuses a lock first, then ends the statement, and only one that hangs is given up.
HANGS_SECONDS = 15.0
assert LOCK_SECONDS < STATEMENT_SECONDS < HANGS_SECONDS
# A silent host is given up by TCP before its session is given up as hanging.
assert SILENT_SECONDS < HANGS_SECONDS
SESSION = {
    "lock_timeout": f"{LOCK_SECONDS}s",
    "statement_timeout": f"{STATEMENT_SECONDS}s",
    "idle_in_transaction_session_timeout": "5s",
    "timezone": "UTC",
    # Every statement here finds its rows by a key. Each is planned once a session and stays planned so: what it is
    # planned on may be a small table, and to read all of a small table once for many keys looks cheap.
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "enable_material": "off",
    "plan_cache_mode": "force_generic_plan",
    "jit": "off",
    "application_name": "cuota",
    # Where row-level security is on (db/row_security.py), a session that names no merchant sees all of them.
    row_security.SETTING: row_security.EVERYONE,
}
# Citus sends a statement to a merchant's node only where its plan knows the merchant: a plan for one merchant.
_ON_CITUS = "SELECT EXISTS (SELECT FROM pg_extension WHERE extname = 'citus')"
ON_CITUS = {"plan_cache_mode": "force_custom_plan"}
# Statements for many requests at once: none of them waits long for a row that somebody else holds. What is refused
# for that is tried one by one, with the patience of SESSION.
TOGETHER_LOCK_MS = 100
assert TOGETHER_LOCK_MS < LOCK_SECONDS * 1000
TOGETHER = {**SESSION, "lock_timeout": f"{TOGETHER_LOCK_MS}ms"}
MOST_TOGETHER = 4
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
# What a session refuses by its own limits, a server that is no longer the primary, or one whose disk is full: nothing
# was applied. A disk too full for the log of a commit ends the server, and so is among LOST.
BUSY = (
    asyncpg.LockNotAvailableError,
    asyncpg.QueryCanceledError,
    asyncpg.DeadlockDetectedError,
    asyncpg.TooManyConnectionsError,
    asyncpg.ReadOnlySQLTransactionError,
    asyncpg.DiskFullError,
)


class UnsafeDatabase(Exception):
    """The database could lose what it acknowledged, or is not ours."""


class Sessions:
    """Sessions of one kind, each used by one request at a time, in the order in which they were asked for."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool
        # asyncpg lets whoever comes just now go before those who wait, some of them for ever.
        self._turns = asyncio.Semaphore(pool.get_max_size())

    @contextlib.asynccontextmanager
    async def session(self) -> AsyncIterator[Connection]:
        """One session; raises Refused(unavailable) when none is free in time: then nothing was applied."""
        if self._turns.locked():
            try:
                async with asyncio.timeout(WAIT_SECONDS):
                    await self._turns.acquire()
            except TimeoutError:
                raise unavailable(
                    "The service is busy and did not start on this request. Try again shortly."
                ) from None
        else:
            await self._turns.acquire()
        try:
            connection = await self._free()
            try:
                yield connection
            finally:
                await self._pool.release(connection)
        finally:
            self._turns.release()

    async def _free(self) -> Connection:
        """One that is free, or a new one."""
        try:
            return await self._pool.acquire(timeout=CONNECT_SECONDS)
        except (TimeoutError, *GONE, asyncpg.TooManyConnectionsError):
            raise unavailable(
                "The database cannot be reached; nothing was applied. Try again shortly."
            ) from None

    async def fetchrow(self, sql: str, *values: object) -> Row | None:
        """One row or None, in one round trip."""
        async with self.session() as connection:
            patience = patience_with(connection)
            try:
                return await connection.fetchrow(sql, *values)
            finally:
                patience.cancel()

    async def fetch(self, sql: str, *values: object) -> list[Row]:
        """All rows, in one round trip."""
        async with self.session() as connection:
            patience = patience_with(connection)
            try:
                rows: list[Row] = await connection.fetch(sql, *values)
                return rows
            finally:
                patience.cancel()

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


class Pool(Sessions):
    """A process's sessions, and a few more for statements that serve many requests at once."""

    def __init__(
        self, pool: asyncpg.Pool, shared: asyncpg.Pool | None = None, apart: asyncpg.Pool | None = None
    ) -> None:
        super().__init__(pool)
        self._shared = Sessions(shared) if shared else None
        # One that may be kept for as long as the process lives: no request ever waits for it.
        self.apart = Sessions(apart or pool)
        self._gatherer = Gatherer(self, self._shared or self, refused_by_the_database)

    async def together(self, kind: Gathered[QueryT, ResultT], merchant_id: UUID, asked: QueryT) -> ResultT:
        """Ask, in one statement with what waits for the same merchant at this moment."""
        return await self._gatherer.ask(kind, merchant_id, asked)

    async def in_step(self) -> None:
        """Wait until all that can be read here is with the standby, too, where there is one.

        After a loss a primary may show what only its own disk has. A commit of ours waits for all that came before it.
        """
        await self.fetchrow("SELECT pg_logical_emit_message(true, 'cuota', '')")

    def sizes(self) -> tuple[int, int]:
        """Sessions open, and of them idle."""
        size, idle = super().sizes()
        more, more_idle = self._shared.sizes() if self._shared else (0, 0)
        return size + more, idle + more_idle

    async def close(self) -> None:
        """Wait for what runs, then close every session."""
        await self._gatherer.finish()
        if self._shared:
            await self._shared.close()
        await self.apart.close()
        await super().close()


def patience_with(connection: Connection) -> asyncio.TimerHandle:
    """A server that hangs is given up, its session with it: what became of the statement is unknown then.

    One that works ends every statement itself, long before; no cancel is sent, so no commit is cut short.
    """
    return asyncio.get_running_loop().call_later(HANGS_SECONDS, connection.terminate)


def refused_by_the_database(problem: Exception) -> bool:
    """Whether a statement was surely not applied, for something in it; not where a session was lost over it."""
    return isinstance(problem, asyncpg.PostgresError) and not isinstance(problem, LOST)


def unavailable(message: str, retry_after: int = 1) -> Refused:
    """503: the caller may try again after so many seconds."""
    return Refused(Code.UNAVAILABLE, message, retry_after=retry_after)


async def open_pool(where: dict[str, Any], size: int, name: str = "cuota") -> Pool:
    """Open a process's sessions, as the service's own role; `name` is what the database calls them."""
    first, service = await service_role.connect(where)
    try:
        takes = (await service_role.read(first)).takes
        secured = await row_security.is_on(first)
        sharded = await first.fetchval(_ON_CITUS)
    finally:
        await first.close()
    more = {"application_name": name} | ({"role": takes} if takes else {}) | (ON_CITUS if sharded else {})
    kind = row_security.Narrowed if secured else Honest
    return Pool(
        await _sessions(service, 1, size, {**SESSION, **more}, kind),
        await _sessions(service, 0, MOST_TOGETHER, {**TOGETHER, **more}, kind),
        await _sessions(service, 0, 1, {**SESSION, **more}, kind),
    )


async def _sessions(
    where: dict[str, Any], least: int, most: int, settings: dict[str, str], kind: type[Honest]
) -> asyncpg.Pool:
    """The reset that asyncpg sends at each release is left out.

    Sessions are never changed, and it would be a fifth of a capture's time.
    """
    return await asyncpg.create_pool(
        **where,
        connect=connect,
        connection_class=kind,
        min_size=least,
        max_size=most,
        max_inactive_connection_lifetime=300,
        server_settings=settings,
        reset=_no_reset,
    )


async def _no_reset(connection: Connection) -> None:
    del connection


async def require_durable(connection: Connection) -> None:
    """Refuse a database that acknowledges what it may lose."""
    for name in ("fsync", "full_page_writes", "synchronous_commit"):
        value = await connection.fetchval("SELECT current_setting($1)", name)
        if value == "off":
            raise UnsafeDatabase(f"The database has {name} = off: it could lose payments. Set {name} = on.")
