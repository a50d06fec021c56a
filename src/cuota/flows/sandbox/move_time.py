"""The right to move the sandbox's clock. Only one process has it, and every worker process pauses for it.

If that process is killed, its lease ends and the workers continue; nothing is lost.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any

import asyncpg

from cuota.core.expected_failure import ExpectedFailure
from cuota.db.locks import JOBS_LOCK, MOVER_LOCK
from cuota.db.pool import Connection
from cuota.db.sandbox import clock
from cuota.flows.sandbox.clock import REFRESH_SECONDS
from cuota.rails import bounded
from cuota.rails.http import LONGEST_SECONDS

HEARTBEAT_SECONDS = 2.0
TRY_SECONDS = 0.05
# The session of a process that was killed a moment ago may still hold the lock for this long.
OTHER_MOVER_SECONDS = 2.0
# The wait has this limit, because a killed worker never reads the new state.
FOLLOW_SECONDS = 10.0
# Workers pause after their webhooks and their calls to rails have ended.
WORKERS_SECONDS = 60.0
assert max(LONGEST_SECONDS, bounded.SECONDS, bounded.MESSAGE_SECONDS) < WORKERS_SECONDS
# Several heartbeats fit into the lease, so that one late heartbeat does not end the pause while the clock moves.
assert clock.LEASE.total_seconds() > 3 * HEARTBEAT_SECONDS


class CannotMoveTime(ExpectedFailure):
    """The clock was not moved. The text says why."""


class Move:
    """The right to move the clock, while it is held."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        # The heartbeat and the moves share one session. The right ends when that session ends.
        self._turn = asyncio.Lock()

    async def reading(self) -> clock.Reading:
        """Read the clock."""
        async with self._turn:
            return await clock.read(self._connection)

    async def hold(self, at: datetime) -> datetime:
        """Stop the clock at an instant and return it. If the clock already shows a later instant, stop it there."""
        async with self._turn:
            return await clock.hold(self._connection, at)

    async def beat(self) -> None:
        """Renew the lease again and again, until the session ends."""
        with contextlib.suppress(asyncpg.InterfaceError, asyncpg.PostgresError, OSError):
            while True:
                await asyncio.sleep(HEARTBEAT_SECONDS)
                async with self._turn:
                    await clock.extend(self._connection)


@contextlib.asynccontextmanager
async def moving(where: dict[str, Any], *, closed: bool = False) -> AsyncIterator[Move]:
    """Take the right to move the clock. Inside the block all other background jobs pause; with `closed`, requests wait too.

    Raises CannotMoveTime if another process is moving the clock, or if the workers do not pause in time.
    """
    async with clock.connected(where) as connection:
        await _alone(connection)
        workers = await clock.sharing(connection, JOBS_LOCK)
        await clock.begin(connection, closed=closed)
        cancelled = False
        try:
            await _workers_stand_still(connection)
            move = Move(connection)
            heart = asyncio.create_task(move.beat())
            try:
                yield move
            finally:
                heart.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await heart
        except asyncio.CancelledError:
            cancelled = True
            raise
        finally:
            if not connection.is_closed():
                await clock.end(connection)
                if not cancelled:
                    await _workers_follow(connection, workers)


async def _workers_follow(connection: Connection, workers: int) -> None:
    """Wait until every process has read the clock's new state, so that the command ends only after that.

    A worker shares the lock again once it has read that the move is over; on a busy machine, this may take a while.
    """
    await clock.unlock(connection, JOBS_LOCK)
    await asyncio.sleep(2 * REFRESH_SECONDS + TRY_SECONDS)
    until = time.monotonic() + FOLLOW_SECONDS
    while await clock.sharing(connection, JOBS_LOCK) < workers and time.monotonic() < until:  # noqa: ASYNC110
        await asyncio.sleep(TRY_SECONDS)


async def _alone(connection: Connection) -> None:
    until = time.monotonic() + OTHER_MOVER_SECONDS
    while not await clock.try_lock(connection, MOVER_LOCK):
        if time.monotonic() > until:
            raise CannotMoveTime(
                "Another `cuota time` command is moving the clock right now. Wait until that command has ended, then try again."
            )
        await asyncio.sleep(TRY_SECONDS)


async def _workers_stand_still(connection: Connection) -> None:
    until = time.monotonic() + WORKERS_SECONDS
    while not await clock.try_lock(connection, JOBS_LOCK):
        if time.monotonic() > until:
            raise CannotMoveTime(
                f"The service's workers did not pause within {WORKERS_SECONDS:.0f} seconds. Try again."
            )
        await clock.extend(connection)
        await asyncio.sleep(TRY_SECONDS)
