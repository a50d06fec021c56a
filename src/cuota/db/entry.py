"""Sessions at a worker of a Citus cluster, for the statements of one merchant's orders, so that the coordinator does less.

Every node of the cluster can send a statement to the node with the merchant's rows. All other statements use the coordinator,
which has the tables that are not distributed: also those with which background jobs find and claim their work.
"""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import AsyncIterator, Callable

import asyncpg

from cuota.db.pool import Connection, Sessions, Unreachable

# While the worker is down, one request in this time tries to connect. The other requests use the coordinator at once.
RETRY_SECONDS = 5.0
log = logging.getLogger("cuota.cluster")


class EntrySessions(Sessions):
    """Sessions at a worker. While that worker cannot be reached, `coordinator` lends the sessions."""

    def __init__(
        self, pool: asyncpg.Pool, coordinator: Sessions, is_silent: Callable[[], bool] = lambda: False
    ) -> None:
        """`is_silent` returns whether the worker is known to hang. A connection to it would be tried in vain, for two seconds."""
        super().__init__(pool)
        self._coordinator = coordinator
        self._is_silent = is_silent
        self._retry_at: float | None = None

    @contextlib.asynccontextmanager
    async def session(self) -> AsyncIterator[Connection]:
        """Lend one session. Raises Refused(unavailable) if neither node has a free session in time; then nothing was applied."""
        async with contextlib.AsyncExitStack() as stack:
            connection = await self._at_worker(stack)
            yield connection or await stack.enter_async_context(self._coordinator.session())

    async def _free(self) -> Connection:
        if self._is_silent():
            raise Unreachable
        return await super()._free()

    async def _at_worker(self, stack: contextlib.AsyncExitStack) -> Connection | None:
        down = self._retry_at is not None
        if self._retry_at is not None:
            if time.monotonic() < self._retry_at:
                return None
            self._retry_at = time.monotonic() + RETRY_SECONDS
        try:
            connection = await stack.enter_async_context(super().session())
        except Unreachable:
            self._retry_at = time.monotonic() + RETRY_SECONDS
            if not down:
                log.warning("entry node cannot be reached")
            return None
        if down:
            self._retry_at = None
            log.warning("entry node can be reached again")
        return connection
