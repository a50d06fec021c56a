"""Whether the database answers, asked once for all who want to know."""

from __future__ import annotations

import asyncio

from cuota.db.pool import Pool


class Probe:
    """Asks the database for all who ask at the same time: a place is found always here, and sessions are few."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._asking: asyncio.Task[None] | None = None

    async def answers(self) -> None:
        """Return if the database does; raises what the pool raises."""
        if self._asking is None:
            self._asking = asyncio.create_task(self._ask())
            self._asking.add_done_callback(self._asked)
        await asyncio.shield(self._asking)

    async def _ask(self) -> None:
        await self._pool.fetchrow("SELECT 1")

    def _asked(self, task: asyncio.Task[None]) -> None:
        self._asking = None
        if not task.cancelled():
            # Whoever asked may have gone, and nobody else would be told.
            task.exception()
