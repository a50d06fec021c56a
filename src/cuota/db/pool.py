"""The pools of database sessions. Every session has short timeouts and the rights of `cuota_app`.

A request waits at most half a second for a free session.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Sequence
from typing import TypeAlias, TypeVar
from uuid import UUID

import asyncpg

from cuota.core.expected_failure import ExpectedFailure
from cuota.core.refusal import Code, Refused
from cuota.db import row_security
from cuota.db.appends import append_of
from cuota.db.deadlock import once_more
from cuota.db.gathered import Gathered, Gatherer
from cuota.db.hosts import SILENT_SECONDS
from cuota.db.kept_sessions import KeptSessions
from cuota.db.knows_silent import KnowsSilent

Connection: TypeAlias = asyncpg.Connection
Row: TypeAlias = asyncpg.Record

QueryT = TypeVar("QueryT")
ResultT = TypeVar("ResultT")

WAIT_SECONDS = 0.5
# Opening a session takes several round trips. A busy process does other work in between, so this timeout is longer.
CONNECT_SECONDS = 2.0
LOCK_SECONDS = 2
STATEMENT_SECONDS = 5
# A working server first refuses a lock, then ends the statement. Only a server that hangs reaches the last timeout.
HANGS_SECONDS = 15.0
assert LOCK_SECONDS < STATEMENT_SECONDS < HANGS_SECONDS
# TCP closes the connection to a host that does not answer before we treat its session as hanging.
assert SILENT_SECONDS < HANGS_SECONDS
SESSION = {
    "lock_timeout": f"{LOCK_SECONDS}s",
    "statement_timeout": f"{STATEMENT_SECONDS}s",
    "idle_in_transaction_session_timeout": "5s",
    "timezone": "UTC",
    # Every statement finds its rows by a key, and is planned once for each session. The table may be small at that moment,
    # and reading a whole small table would look cheap to the planner. This setting prevents such plans.
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "enable_material": "off",
    # A row that is found by a key costs little more than the next row: what the service reads is in memory or on an SSD.
    "random_page_cost": "1.1",
    "plan_cache_mode": "force_generic_plan",
    "jit": "off",
    "application_name": "cuota",
    # If row-level security is on (db/row_security.py), a session that names no merchant sees the rows of all merchants.
    row_security.SETTING: row_security.EVERYONE,
}
# Citus sends a statement to one merchant's node only if its plan was made for that merchant, so ON_CITUS turns generic plans off.
HAS_CITUS = "SELECT EXISTS (SELECT FROM pg_extension WHERE extname = 'citus')"
# A connection to a node that does not answer at all times out after a second.
ON_CITUS = {"plan_cache_mode": "force_custom_plan", "citus.node_connection_timeout": "1s"}
# Settings for statements that serve many requests at once. They wait only briefly for a locked row. If the server refuses
# such a statement, its requests run one by one, with the timeouts of SESSION.
TOGETHER_LOCK_MS = 100
assert TOGETHER_LOCK_MS < LOCK_SECONDS * 1000
TOGETHER = {**SESSION, "lock_timeout": f"{TOGETHER_LOCK_MS}ms"}
MOST_TOGETHER = 4
# The exceptions of asyncpg that mean that the session was lost, for example because the server crashed or restarted.
LOST = (
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    # An error of the driver's state machine, raised when a session is used just after the server has ended it.
    asyncpg.InternalClientError,
    asyncpg.CannotConnectNowError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    ConnectionError,
)
GONE = (*LOST, OSError)
# The exception that means that the server allows no more sessions.
FULL = asyncpg.TooManyConnectionsError
# The exceptions that mean that nothing was applied: a timeout of the session, a server that is no longer the primary, or a
# full disk. A disk without space for the log of a commit ends the server; that error is in LOST.
BUSY = (
    asyncpg.LockNotAvailableError,
    asyncpg.QueryCanceledError,
    asyncpg.DeadlockDetectedError,
    asyncpg.TooManyConnectionsError,
    asyncpg.ReadOnlySQLTransactionError,
    asyncpg.DiskFullError,
)


class Unreachable(Refused):
    """No session could be opened, so nothing was applied."""

    def __init__(self) -> None:
        message = "The service cannot reach its database; nothing was applied. Try again shortly."
        super().__init__(Code.UNAVAILABLE, message, retry_after=1)


class UnsafeDatabase(ExpectedFailure):
    """The database must not be used: it could lose acknowledged data, or is not Cuota's. The text says what to do."""


class Sessions:
    """A pool of sessions of one kind. One request uses a session at a time. Requests get sessions in the order of arrival.

    A statement that `fetchrow`, `fetch` and `execute` run is a transaction of its own, so it is run once more after a deadlock.
    """

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool
        self._kept = KeptSessions(pool)
        # asyncpg's own pool lets a new request go ahead of waiting requests, so that some could wait forever.
        self._turns = asyncio.Semaphore(pool.get_max_size())

    @contextlib.asynccontextmanager
    async def session(self) -> AsyncIterator[Connection]:
        """Lend one session. Raises Refused(unavailable) if none is free in time; then nothing was applied."""
        if self._turns.locked():
            try:
                async with asyncio.timeout(WAIT_SECONDS):
                    await self._turns.acquire()
            except TimeoutError:
                raise unavailable("The service is busy; nothing was applied. Try again shortly.") from None
        else:
            await self._turns.acquire()
        try:
            connection = await self._free()
            good = False
            try:
                yield connection
                good = True
            finally:
                await self._kept.put(connection, good=good)
        finally:
            self._turns.release()

    async def _free(self) -> Connection:
        """Return a free session, or open a new one."""
        try:
            return await self._kept.take(CONNECT_SECONDS)
        except (TimeoutError, *GONE, asyncpg.TooManyConnectionsError):
            raise Unreachable from None

    async def fetchrow(self, sql: str, *values: object) -> Row | None:
        """Return one row or None, in one round trip."""
        async with self.session() as connection:
            patience = patience_with(connection)
            try:
                return await once_more(lambda: connection.fetchrow(sql, *values))
            finally:
                patience.cancel()

    async def fetch(self, sql: str, *values: object) -> list[Row]:
        """Return all rows, in one round trip."""
        async with self.session() as connection:
            patience = patience_with(connection)
            try:
                rows: list[Row] = await once_more(lambda: connection.fetch(sql, *values))
                return rows
            finally:
                patience.cancel()

    async def execute(self, sql: str, *values: object) -> str:
        """Run one statement and return its command tag."""
        async with self.session() as connection:
            tag: str = await once_more(lambda: connection.execute(sql, *values))
            return tag

    def sizes(self) -> tuple[int, int]:
        """Return the number of open sessions, and how many of them are idle."""
        return self._pool.get_size(), self._kept.idle()

    async def renew(self) -> None:
        """Replace every session: an idle one now, the others when they are free."""
        await self._kept.renew()

    async def close(self) -> None:
        """Wait for running statements, then close every session."""
        await self._kept.close()


class Pool(Sessions):
    """The sessions of one process: one pool for single requests, and a small one for batches."""

    def __init__(
        self,
        pool: asyncpg.Pool,
        shared: asyncpg.Pool | None = None,
        apart: asyncpg.Pool | None = None,
        asking: asyncpg.Pool | None = None,
        *,
        guard: KnowsSilent | None = None,
    ) -> None:
        super().__init__(pool)
        # True if the database has Citus.
        self.sharded = guard is not None
        self._guard = guard
        self._shared = Sessions(shared) if shared else None
        # A session that may be held as long as the process runs. No request waits for it.
        self.apart: Sessions = Sessions(apart) if apart else self
        # Sessions whose node keeps no connections to the others, so that they find out which of them do not answer.
        self.asking: Sessions = Sessions(asking) if asking else self
        # The sessions for the statements of one merchant's orders.
        self.entry: Sessions = self
        self._more = [self._shared] if self._shared else []
        self._gatherer = Gatherer(self, self._shared or self, refused_by_the_database)
        self._unowned = Gatherer(self, self._shared or self, refused_by_the_database)

    def enter_by(self, alone: asyncpg.Pool, together: asyncpg.Pool, kind: Callable[..., Sessions]) -> None:
        """Run the statements of one merchant's orders in other sessions. Call this before the first request.

        `kind` makes the Sessions from a pool, and from the Sessions to use while that pool's server cannot be reached.
        """
        self.entry = kind(alone, self)
        shared = kind(together, self._shared or self)
        self._more += [self.entry, shared]
        self._gatherer = Gatherer(self.entry, shared, refused_by_the_database)

    async def together(
        self, kind: Gathered[QueryT, ResultT], merchant_id: UUID | None, asked: QueryT
    ) -> ResultT:
        """Run a request in one batch with the other requests of the same merchant, or of no merchant, that wait at this moment."""
        gatherer = self._unowned if merchant_id is None else self._gatherer
        return await gatherer.ask(kind, merchant_id, asked)

    async def append(self, sql: str, *columns: Sequence[object]) -> None:
        """Add rows with a statement whose parameters are arrays. Calls that wait at this moment run as one, with longer arrays."""
        await self.together(append_of(sql), None, columns)

    async def in_step(self) -> None:
        """Wait until the standby, if there is one, has everything that can be read here.

        After a lost connection, the primary may show changes that only its own disk has. Our commit waits until the standby has
        all earlier changes.
        """
        await self.fetchrow("SELECT pg_logical_emit_message(true, 'cuota', '')")

    def sizes(self) -> tuple[int, int]:
        """Return the number of open sessions, and how many of them are idle."""
        sizes = [super().sizes(), *(sessions.sizes() for sessions in self._more)]
        return sum(size for size, _ in sizes), sum(idle for _, idle in sizes)

    async def close(self) -> None:
        """Wait for running statements, then close every session."""
        if self._guard is not None:
            self._guard.end()
        await self._gatherer.finish()
        await self._unowned.finish()
        for sessions in (*self._more, self.apart, self.asking):
            if sessions is not self:
                await sessions.close()
        await super().close()

    @property
    def knows_silent(self) -> bool:
        """Return whether a node of the cluster is known not to answer. Then a statement for all nodes is in vain."""
        return self._guard is not None and self._guard.knows_silent()

    async def renew(self) -> None:
        """Replace the sessions for requests."""
        for sessions in self._more:
            await sessions.renew()
        await super().renew()


def patience_with(connection: Connection) -> asyncio.TimerHandle:
    """Start a timer that closes the session if the server hangs. The result of its statement is then unknown.

    A working server ends every statement long before that. No cancel request is sent, so no commit is interrupted.
    """
    return asyncio.get_running_loop().call_later(HANGS_SECONDS, connection.terminate)


def refused_by_the_database(problem: Exception) -> bool:
    """True if the database rejected the statement, which was then certainly not applied. False if the session was lost."""
    return isinstance(problem, asyncpg.PostgresError) and not isinstance(problem, LOST)


def unavailable(message: str, retry_after: int = 1) -> Refused:
    """Return the refusal for status 503. The client may try again after `retry_after` seconds."""
    return Refused(Code.UNAVAILABLE, message, retry_after=retry_after)


async def require_durable(connection: Connection) -> None:
    """Raise UnsafeDatabase if the database could lose data that it has acknowledged."""
    for name in ("fsync", "full_page_writes", "synchronous_commit"):
        value = await connection.fetchval("SELECT current_setting($1)", name)
        if value == "off":
            raise UnsafeDatabase(f"The database has {name} = off: it could lose payments. Set {name} = on.")
