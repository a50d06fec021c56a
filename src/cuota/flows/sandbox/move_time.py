"""Moving the sandbox's clock: one at a time, with every worker standing still. Killed in the middle it harms nothing."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any

import asyncpg

from cuota.db.locks import JOBS_LOCK, MOVER_LOCK
from cuota.db.pool import Connection
from cuota.db.sandbox import clock
from cuota.flows.sandbox.clock import REFRESH_SECONDS
from cuota.rails import bounded
from cuota.rails.http import LONGEST_SECONDS

HEARTBEAT_SECONDS = 2.0
TRY_SECONDS = 0.05
# Somebody who was killed a moment ago may still seem to be there.
OTHER_MOVER_SECONDS = 2.0
# Workers come to rest once their webhooks and their calls to rails have ended.
WORKERS_SECONDS = 60.0
assert max(LONGEST_SECONDS, bounded.SECONDS, bounded.MESSAGE_SECONDS) < WORKERS_SECONDS
# Several heartbeats within the lease: one that is late does not start the service again while the clock moves.
assert clock.LEASE.total_seconds() > 3 * HEARTBEAT_SECONDS


class CannotMoveTime(Exception):
    """The clock stays where it is; the text says why."""


class Move:
    """The right to move the clock, held."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        # The heartbeat and the mover use one session, whose end is the end of the right.
        self._turn = asyncio.Lock()

    async def reading(self) -> clock.Reading:
        """Where the clock stands."""
        async with self._turn:
            return await clock.read(self._connection)

    async def hold(self, at: datetime) -> datetime:
        """Stand still at an instant, never an earlier one than the clock shows; answers which."""
        async with self._turn:
            return await clock.hold(self._connection, at)

    async def beat(self) -> None:
        """Say again and again that we are still at it; ends when the session does."""
        with contextlib.suppress(asyncpg.InterfaceError, asyncpg.PostgresError, OSError):
            while True:
                await asyncio.sleep(HEARTBEAT_SECONDS)
                async with self._turn:
                    await clock.extend(self._connection)


@contextlib.asynccontextmanager
async def moving(where: dict[str, Any], *, closed: bool = False) -> AsyncIterator[Move]:
    """Inside, nobody else's jobs run; with `closed`, requests wait too. Raises CannotMoveTime."""
    async with clock.connected(where) as connection:
        await _alone(connection)
        await clock.begin(connection, closed=closed)
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
        finally:
            if not connection.is_closed():
                await clock.end(connection)
                await _workers_follow(connection)


async def _workers_follow(connection: Connection) -> None:
    """Every process has seen the end before the next move may begin, and before our command says that it is done."""
    await clock.unlock(connection, JOBS_LOCK)
    await asyncio.sleep(2 * REFRESH_SECONDS + TRY_SECONDS)


async def _alone(connection: Connection) -> None:
    until = time.monotonic() + OTHER_MOVER_SECONDS
    while not await clock.try_lock(connection, MOVER_LOCK):
        if time.monotonic() > until:
            raise CannotMoveTime(
                "Another `cuota time` command is moving the clock right now. Wait until it has ended, then try again."
            )
        await asyncio.sleep(TRY_SECONDS)


async def _workers_stand_still(connection: Connection) -> None:
    until = time.monotonic() + WORKERS_SECONDS
    while not await clock.try_lock(connection, JOBS_LOCK):
        if time.monotonic() > until:
            raise CannotMoveTime(
                f"The service's workers did not come to rest within {WORKERS_SECONDS:.0f} seconds. Try again."
            )
        await clock.extend(connection)
        await asyncio.sleep(TRY_SECONDS)
