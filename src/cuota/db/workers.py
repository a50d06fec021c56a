"""Named workers: each holds a lock with its name while it is alive, so that the claims of dead workers can be found.

PostgreSQL frees the lock when the session ends, however it ends. So no clocks are compared and nothing is written.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import time
from collections.abc import AsyncIterator

from cuota.core.refusal import Refused
from cuota.db.locks import JOBS_LOCK, MIGRATE_LOCK, MOVER_LOCK
from cuota.db.pool import BUSY, GONE, Connection, Pool, patience_with
from cuota.db.session import Session

# The lock is checked several times within the time after which a worker without its lock is considered dead.
LOOK_SECONDS = 0.5
CLOSE_SECONDS = 2.0
NAMELESS_SECONDS = 5.0
log = logging.getLogger("cuota.work")

_TAKE = "SELECT pg_try_advisory_lock($1)"
# A primary that was demoted still has locks, but no other process checks them.
_STILL = "SELECT NOT pg_is_in_recovery() AS here"
# A shared lock, freed at the end of the statement, so that any number of workers may check at the same time.
_UNHELD = """SELECT name FROM unnest($1::bigint[]) AS t (name)
    WHERE pg_try_advisory_xact_lock_shared(name)"""
# PostgreSQL shows a session lock on one 64-bit number as two 32-bit numbers.
_ALIVE = """SELECT count(*) AS alive FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1 AND granted
    AND mode = 'ExclusiveLock' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND (classid::bigint << 32) | objid::bigint <> ALL ($1::bigint[])"""


class Worker:
    """A process, with its unique name among all workers."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._name = secrets.randbits(62) + 1
        self._held_at = time.monotonic()

    @property
    def name(self) -> int | None:
        """Return the name for this worker's claims, or None if it could not take the lock for a long time.

        Claims without a name end only by their lease.

        The worker keeps its name between two sessions. If the worker dies in between, other workers still notice that.
        """
        return self._name if time.monotonic() - self._held_at < NAMELESS_SECONDS else None

    @contextlib.asynccontextmanager
    async def living(self) -> AsyncIterator[None]:
        """Hold the lock inside this block, and take it again whenever its session is lost."""
        task = asyncio.create_task(self._live())
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def _live(self) -> None:
        while True:
            try:
                async with self._pool.apart.session() as session:
                    await self._hold(session)
            except (Refused, TimeoutError, *GONE, *BUSY) as problem:
                facts = {"problem": type(problem).__name__}
                log.warning("worker has no name for now", extra={"facts": facts})
            except Exception:
                log.exception("worker has no name for now")
            await asyncio.sleep(LOOK_SECONDS / 2)

    async def _hold(self, session: Connection) -> None:
        try:
            # The lock is still taken if the server has not noticed yet that our previous session has ended.
            while not await _true(session, _TAKE, self._name):  # noqa: ASYNC110 - the server tells nobody
                await asyncio.sleep(LOOK_SECONDS / 2)
            self._held_at = time.monotonic()
            while await _true(session, _STILL):
                self._held_at = time.monotonic()
                await asyncio.sleep(LOOK_SECONDS)
        finally:
            # The lock ends with the session.
            with contextlib.suppress(TimeoutError, *GONE):
                await session.close(timeout=CLOSE_SECONDS)


async def _true(session: Connection, sql: str, *values: object) -> bool:
    patience = patience_with(session)
    try:
        return bool(await session.fetchval(sql, *values))
    finally:
        patience.cancel()


async def unheld(session: Session, names: list[int]) -> list[int]:
    """Return the names whose lock nobody holds at this moment. These workers are dead, or about to take the lock again."""
    return [row["name"] for row in await session.fetch(_UNHELD, names)]


async def count_alive(session: Session) -> int:
    """Return how many processes of the service (`cuota serve`, `cuota work`) hold a lock with their name."""
    row = await session.fetchrow(_ALIVE, [JOBS_LOCK, MOVER_LOCK, MIGRATE_LOCK])
    return 0 if row is None else int(row["alive"])
