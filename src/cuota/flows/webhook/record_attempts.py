"""Records results of deliveries in batches: results that wait at the same moment share one statement for each merchant."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import defaultdict
from collections.abc import Callable
from uuid import UUID

import asyncpg

from cuota.core.refusal import Refused
from cuota.db.hosts import NodeLost
from cuota.db.pool import BUSY, GONE, Pool
from cuota.db.webhook import deliveries
from cuota.db.webhook.deliveries import Result
from cuota.rails.http import LONGEST_SECONDS

AT_ONCE = 2
MOST_TOGETHER = 200
# How long to try to record. This must be shorter than a claim's lease, after which another worker sends again anyway.
TRY_SECONDS = 15.0
# An attempt is made and recorded within its claim's lease: after that another worker makes the attempt again.
assert deliveries.LEASE.total_seconds() > LONGEST_SECONDS + TRY_SECONDS
PAUSE_SECONDS = 0.25
WaitingResult = tuple[Result, "asyncio.Future[None]"]
log = logging.getLogger("cuota.webhooks")


class AttemptRecorder:
    """Records results; each courier has one.

    If a result cannot be recorded in time, it is lost and the delivery is retried.
    """

    def __init__(self, pool: Pool, freed: Callable[[], None]) -> None:
        """`freed` is called when a recorded result has made a later event due."""
        self._pool = pool
        self._freed = freed
        self._waiting: dict[UUID, list[WaitingResult]] = defaultdict(list)
        self._writers: set[asyncio.Task[None]] = set()
        # Writers whose merchant is on a node that is down. They do not count toward AT_ONCE, so that the others' results are recorded.
        self._stuck: set[asyncio.Task[None]] = set()

    async def record(self, result: Result) -> None:
        """Record a result. Return when it is recorded, or when recording has timed out."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[result.claimed.merchant_id].append((result, done))
        self._start_writer()
        await done

    def _start_writer(self) -> None:
        if self._waiting and len(self._writers) < AT_ONCE:
            self._writers.add(asyncio.create_task(self._write()))

    async def finish(self) -> None:
        """Wait for the writers."""
        if writers := self._writers | self._stuck:
            await asyncio.wait(writers)

    async def _write(self) -> None:
        writer = asyncio.current_task()
        assert writer is not None
        try:
            while self._waiting:
                # Take the merchant that has waited longest. Results that do not fit into the batch go to the end of the
                # queue.
                merchant_id = next(iter(self._waiting))
                together = self._waiting.pop(merchant_id)
                if left := together[MOST_TOGETHER:]:
                    self._waiting[merchant_id] = left
                await self._save(merchant_id, together[:MOST_TOGETHER])
        finally:
            # There is no `await` between this line and the check that found nothing waiting. So the next result starts a
            # new writer.
            self._writers.discard(writer)
            self._stuck.discard(writer)

    def _let_others_go_on(self) -> None:
        writer = asyncio.current_task()
        if writer in self._writers:
            self._writers.discard(writer)
            self._stuck.add(writer)
            self._start_writer()

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
                if isinstance(problem, NodeLost):
                    self._let_others_go_on()
                if time.monotonic() > until:
                    facts = {"problem": type(problem).__name__, "attempts": len(results)}
                    return log.warning("attempts not recorded", extra={"facts": facts})
                await asyncio.sleep(PAUSE_SECONDS)
            except asyncpg.PostgresError:
                if len(results) == 1:
                    return log.exception("attempt not recorded")
                # The database rejected one of the results. Record each alone, so that the others are kept.
                for result in results:
                    await self._recorded(merchant_id, [result])
                return None
            else:
                return None
