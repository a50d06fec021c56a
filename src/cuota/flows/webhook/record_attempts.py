"""Keeping what tries came to: whatever waits at a moment is recorded together, one statement for each merchant."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Callable
from uuid import UUID

import asyncpg

from cuota.core.refusal import Refused
from cuota.db.pool import BUSY, GONE, Pool
from cuota.db.webhook import deliveries
from cuota.db.webhook.deliveries import Result

AT_ONCE = 2
MOST_TOGETHER = 200
# Within a claim's lease, after which another worker tries anyhow.
TRY_SECONDS = 15.0
PAUSE_SECONDS = 0.25
WaitingResult = tuple[Result, "asyncio.Future[None]"]
log = logging.getLogger("cuota.webhooks")


class AttemptRecorder:
    """One a courier. A result that cannot be recorded in time is lost, and its delivery is tried again."""

    def __init__(self, pool: Pool, freed: Callable[[], None]) -> None:
        """`freed` is told when something has become due by what was recorded."""
        self._pool = pool
        self._freed = freed
        self._waiting: dict[UUID, list[WaitingResult]] = defaultdict(list)
        self._writers: set[asyncio.Task[None]] = set()

    async def record(self, result: Result) -> None:
        """Return once it is recorded, or given up."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[result.claimed.merchant_id].append((result, done))
        if len(self._writers) < AT_ONCE:
            writer = asyncio.create_task(self._write())
            self._writers.add(writer)
        await done

    async def finish(self) -> None:
        """Wait for the writers."""
        if self._writers:
            await asyncio.wait(self._writers)

    async def _write(self) -> None:
        writer = asyncio.current_task()
        assert writer is not None
        try:
            while self._waiting:
                # The merchant that has waited longest; what is left of it goes to the end.
                merchant_id = next(iter(self._waiting))
                together = self._waiting.pop(merchant_id)
                if left := together[MOST_TOGETHER:]:
                    self._waiting[merchant_id] = left
                await self._save(merchant_id, together[:MOST_TOGETHER])
        finally:
            # In the same step that found nothing waiting: whatever comes next starts a writer of its own.
            self._writers.discard(writer)

    async def _save(self, merchant_id: UUID, together: list[WaitingResult]) -> None:
        try:
            await self._recorded(merchant_id, [result for result, _ in together])
        finally:
            for _, done in together:
                if not done.done():
                    done.set_result(None)

    async def _recorded(self, merchant_id: UUID, results: list[Result]) -> None:
        until = time.monotonic() + TRY_SECONDS
        while True:
            try:
                if await deliveries.record(self._pool, merchant_id, results):
                    self._freed()
            except (Refused, *GONE, *BUSY) as problem:
                if time.monotonic() > until:
                    facts = {"problem": type(problem).__name__, "attempts": len(results)}
                    return log.warning("attempts not recorded", extra={"facts": facts})
                await asyncio.sleep(PAUSE_SECONDS)
            except asyncpg.PostgresError:
                if len(results) == 1:
                    return log.exception("attempt not recorded")
                # One that the database refuses takes no other with it.
                for result in results:
                    await self._recorded(merchant_id, [result])
                return None
            else:
                return None
