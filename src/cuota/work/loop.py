"""The worker's loop: small jobs, each at its own pace. Any number of workers may run; each job claims or is stale."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from cuota.core.refusal import Refused
from cuota.db.pool import GONE
from cuota.flows.context import Context
from cuota.work.card_refunds import return_due_money
from cuota.work.due_orders import settle_due_orders
from cuota.work.tidy import tidy

log = logging.getLogger("cuota.work")


@dataclass(frozen=True, slots=True)
class Job:
    """A job answers how much it did; after none it rests so many seconds."""

    name: str
    run: Callable[[Context], Awaitable[int]]
    rest: float


JOBS = (
    Job("due_orders", settle_due_orders, 1.0),
    Job("card_refunds", return_due_money, 1.0),
    Job("tidy", tidy, 300.0),
)


async def work(context: Context, stop: asyncio.Event) -> None:
    """Run every job until told to stop; what is at work then is finished."""
    async with asyncio.TaskGroup() as group:
        for job in JOBS:
            group.create_task(_repeat(context, job, stop))


async def _repeat(context: Context, job: Job, stop: asyncio.Event) -> None:
    while not stop.is_set():
        done = 0
        try:
            done = await job.run(context)
        except (Refused, *GONE) as problem:
            log.warning("job waits", extra={"facts": {"job": job.name, "problem": type(problem).__name__}})
        except Exception:
            # One job's bug stops neither the others nor itself for good.
            log.exception("job failed", extra={"facts": {"job": job.name}})
        if not done:
            try:
                async with asyncio.timeout(job.rest):
                    await stop.wait()
            except TimeoutError:
                continue
