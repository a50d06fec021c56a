"""Keeps idle sessions out of asyncpg's own pool for a few seconds, so that the next request gets one at once.

asyncpg's pool starts a task, a timer and a lock for each loan, which takes as much CPU as a small statement.
"""

from __future__ import annotations

import asyncio
from typing import cast

import asyncpg

# After this time, idle sessions go back to asyncpg's pool, which closes them after a long idle time.
KEEP_SECONDS = 10.0


class KeptSessions:
    """The sessions of one of asyncpg's pools. The caller ensures that at most `max_size` are lent at a time."""

    def __init__(self, pool: asyncpg.Pool) -> None:
        self._pool = pool
        self._kept: list[asyncpg.Connection] = []
        self._timer: asyncio.TimerHandle | None = None
        self._giving_back: asyncio.Task[None] | None = None

    async def take(self, timeout: float) -> asyncpg.Connection:  # noqa: ASYNC109 - asyncpg's
        """Return the session that was used last, or a session of asyncpg's pool."""
        while self._kept:
            kept = self._kept.pop()
            if _usable(kept):
                return kept
            await self._pool.release(kept)
        return cast("asyncpg.Connection", await self._pool.acquire(timeout=timeout))

    async def put(self, session: asyncpg.Connection, *, good: bool) -> None:
        """Take a session back. `good` means that its last statement ended without an error."""
        if not good or self._pool.is_closing() or not _usable(session):
            await self._pool.release(session)
            return
        self._kept.append(session)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(KEEP_SECONDS, self._end_of_time)

    def idle(self) -> int:
        """Return how many open sessions wait here or in asyncpg's pool."""
        return int(self._pool.get_idle_size()) + len(self._kept)

    async def renew(self) -> None:
        """Close the sessions that are kept here. Replace the others when they are taken or given back."""
        await self._pool.expire_connections()
        # The server may hang, so do not wait for it.
        for session in self._kept:
            session.terminate()
        await self._give_back()

    async def close(self) -> None:
        """Wait until every session is back, then close all sessions."""
        if self._timer is not None:
            self._timer.cancel()
        if self._giving_back is not None:
            await self._giving_back
        closing = asyncio.ensure_future(self._pool.close())
        # From here on, `put` gives every session back to asyncpg's pool, which waits for them.
        await asyncio.sleep(0)
        await self._give_back()
        await closing

    def _end_of_time(self) -> None:
        self._timer = None
        self._giving_back = asyncio.get_running_loop().create_task(self._give_back())

    async def _give_back(self) -> None:
        kept, self._kept = self._kept, []
        for session in kept:
            await self._pool.release(session)


def _usable(session: asyncpg.Connection) -> bool:
    try:
        return not session.is_closed() and not session.is_in_transaction()
    except asyncpg.InterfaceError:
        return False  # the session was lost, and asyncpg's pool has taken it back
