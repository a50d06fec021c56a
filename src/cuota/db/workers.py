"""Workers by name: each holds a lock of that name for as long as it lives, so that what a dead one had claimed is known.

PostgreSQL gives the lock back when the session ends, however it ends: no clocks are compared, nothing is written.
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

# Several looks within the time after which a worker without its lock is taken for dead.
LOOK_SECONDS = 0.5
CLOSE_SECONDS = 2.0
NAMELESS_SECONDS = 5.0
log = logging.getLogger("cuota.work")

_TAKE = "SELECT pg_try_advisory_lock($1)"
# A primary that was demoted under us has locks, too, which nobody looks at.
_STILL = "SELECT NOT pg_is_in_recovery() AS here"
# Shared, and given back at the end of the statement: any number of workers may look at once.
_UNHELD = """SELECT name FROM unnest($1::bigint[]) AS t (name)
    WHERE pg_try_advisory_xact_lock_shared(name)"""
# A session's lock by one number of 64 bits is shown as two of 32.
_ALIVE = """SELECT count(*) AS alive FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1 AND granted
    AND mode = 'ExclusiveLock' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
    AND (classid::bigint << 32) | objid::bigint <> ALL ($1::bigint[])"""


class Worker:
    """A process by its name among all workers."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._name = secrets.randbits(62) + 1
        self._held_at = time.monotonic()

    @property
    def name(self) -> int | None:
        """What its claims carry. None where it could not take the lock for long: those end by their lease alone.

        Between two sessions it keeps its name: should it die just then, that is seen all the same.
        """
        return self._name if time.monotonic() - self._held_at < NAMELESS_SECONDS else None

    @contextlib.asynccontextmanager
    async def living(self) -> AsyncIterator[None]:
        """Inside, the lock is held, and taken again after each loss of its session."""
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
            # Taken still where the server has not noticed yet that our session before this one is gone.
            while not await _true(session, _TAKE, self._name):  # noqa: ASYNC110 - the server tells nobody
                await asyncio.sleep(LOOK_SECONDS / 2)
            self._held_at = time.monotonic()
            while await _true(session, _STILL):
                self._held_at = time.monotonic()
                await asyncio.sleep(LOOK_SECONDS)
        finally:
            # The lock goes with it.
            with contextlib.suppress(TimeoutError, *GONE):
                await session.close(timeout=CLOSE_SECONDS)


async def _true(session: Connection, sql: str, *values: object) -> bool:
    patience = patience_with(session)
    try:
        return bool(await session.fetchval(sql, *values))
    finally:
        patience.cancel()


async def unheld(session: Session, names: list[int]) -> list[int]:
    """Those of these names whose lock nobody holds at this moment: dead, or about to take it again."""
    return [row["name"] for row in await session.fetch(_UNHELD, names)]


async def count_alive(session: Session) -> int:
    """How many processes of the service (`cuota serve`, `cuota work`) hold their name's lock: 0 where none runs."""
    row = await session.fetchrow(_ALIVE, [JOBS_LOCK, MOVER_LOCK, MIGRATE_LOCK])
    return 0 if row is None else int(row["alive"])
