"""Checks whether the database answers, with one query for all readiness checks that run at the same time."""

from __future__ import annotations

import asyncio

from cuota.db.cluster.watch import NodeWatch
from cuota.db.pool import Pool


class Probe:
    """Shares one query between concurrent readiness checks.

    Admission control always admits a readiness check, and database sessions are few. Without sharing, a flood of checks
    would occupy all sessions. `nodes` watches the nodes of a cluster.
    """

    def __init__(self, pool: Pool) -> None:
        self._pool = pool
        self._query: asyncio.Task[None] | None = None
        self.nodes = NodeWatch(pool)

    async def answers(self) -> None:
        """Return when the database has answered; otherwise raise the error of the pool."""
        if self._query is None:
            self._query = asyncio.create_task(self._run_query())
            self._query.add_done_callback(self._finished)
        await asyncio.shield(self._query)

    async def _run_query(self) -> None:
        await self._pool.fetchrow("SELECT 1")

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._query = None
        if not task.cancelled():
            # If every check was cancelled meanwhile, nobody reads the exception. Reading it here avoids asyncio's warning.
            task.exception()
