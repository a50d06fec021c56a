"""Repeats a transaction that needs a lock on whole tables until no other session holds the lock.

While a session waits for such a lock, everything that comes later waits behind it, also reads. So each attempt gives up after
LOCK_SECONDS, and the requests of the service run in the pauses between the attempts.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeVar

import asyncpg

from cuota.db.pool import GONE, Connection, UnsafeDatabase

LOCK_SECONDS = 2
PAUSE_SECONDS = 5.0
PATIENCE_SECONDS = 300.0
# Longer than an attempt takes that waits for nothing.
LOOK_SECONDS = 0.3
# The first of the sessions that this session waits for. Only their owner and a superuser see when their statement began.
_HOLDER = """SELECT a.pid, a.application_name, a.usename, a.query_start
    FROM unnest(pg_blocking_pids($1)) b (pid) JOIN pg_stat_activity a ON a.pid = b.pid
    ORDER BY a.xact_start LIMIT 1"""
_UNKNOWN = "another session"

ResultT = TypeVar("ResultT")


@dataclass(frozen=True, slots=True)
class LockWait:
    """`opened` opens a second session, which sees who holds the lock; `tell` tells a person why the work takes so long."""

    opened: Callable[[], Awaitable[Connection]]
    tell: Callable[[str], None]


async def with_locks(
    connection: Connection, what: str, attempt: Callable[[], Awaitable[ResultT]], wait: LockWait | None
) -> ResultT:
    """Call `attempt`, which is one transaction of the connection, until it gets its locks. `what` names it for a person.

    Raises UnsafeDatabase, which names the session that holds the lock, after PATIENCE_SECONDS. Without `wait`, after the first
    attempt.
    """
    until = time.monotonic() + (PATIENCE_SECONDS if wait else 0)
    watch = _Watch(connection.get_server_pid(), wait)
    try:
        while True:
            running = asyncio.ensure_future(attempt())
            try:
                await watch.look(running)
                return await running
            except asyncpg.LockNotAvailableError as problem:
                if wait is None or time.monotonic() > until:
                    raise _given_up(what, watch) from problem
                left = until - time.monotonic()
                wait.tell(
                    f"{what} waits for a lock that {watch.holder} holds. Trying for {left:.0f} more seconds."
                )
            finally:
                # A stop of the service ends the attempt before anything else uses the session.
                running.cancel()
                await asyncio.wait([running])
            await asyncio.sleep(PAUSE_SECONDS)
    finally:
        await watch.close()


def _given_up(what: str, watch: _Watch) -> UnsafeDatabase:
    number = "its number" if watch.pid is None else watch.pid
    return UnsafeDatabase(
        f"{what} was not applied: it needs a lock that {watch.holder} holds. Start the command again when that session has ended. "
        "A backup (cuota backup, pg_dump) holds its locks until it has ended; wait for it, or stop it. To end another session, "
        f"run SELECT pg_terminate_backend({number}) in psql."
    )


class _Watch:
    """A second session that sees for whom the first one waits. `holder` names that session for a person."""

    def __init__(self, pid: int, wait: LockWait | None) -> None:
        self._ours, self._wait = pid, wait
        self._session: Connection | None = None
        self.holder, self.pid = _UNKNOWN, None

    async def look(self, running: asyncio.Future[ResultT]) -> None:
        """Find the holder of the lock until the attempt has ended. The attempt goes on if that is impossible."""
        while not running.done():
            await asyncio.wait([running], timeout=LOOK_SECONDS)
            if self._wait is not None and not running.done():
                with contextlib.suppress(*GONE, TimeoutError, asyncpg.PostgresError):
                    self._session = self._session or await self._wait.opened()
                    await self._read(self._session)

    async def _read(self, session: Connection) -> None:
        row = await session.fetchrow(_HOLDER, self._ours)
        if row is not None:
            since = (
                ""
                if row["query_start"] is None
                else f", its statement began at {row['query_start']:%H:%M:%S} UTC"
            )
            name = row["application_name"] or "no name"
            self.pid = row["pid"]
            self.holder = f"session {row['pid']} ({name}, role {row['usename']}{since})"

    async def close(self) -> None:
        """Close the second session."""
        if self._session is not None:
            await self._session.close()
