"""The worker's loop: small jobs, each at its own pace. Any number of workers may run; each job claims or is stale."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from cuota.core.refusal import Refused
from cuota.db.pool import GONE
from cuota.db.workers import Worker
from cuota.flows.context import Context
from cuota.flows.sandbox.standstill import InFlightGate, Standstill
from cuota.work.card_refunds import return_due_money
from cuota.work.due_orders import settle_due_orders
from cuota.work.messages import send_due_messages
from cuota.work.retention import keep_terms
from cuota.work.tidy import tidy
from cuota.work.virtual_cards import settle_cards
from cuota.work.webhooks import Webhooks

log = logging.getLogger("cuota.work")


@dataclass(frozen=True, slots=True)
class Job:
    """A job answers how much it did; after none it rests so many seconds, or until something has happened here.

    `pause`: so many seconds after a run that did something. What happens meanwhile is done together: it costs a busy
    service a fraction, and a quiet one nothing. `real` rests by the real clock, whatever the sandbox's says.
    """

    name: str
    run: Callable[[Context], Awaitable[int]]
    rest: float
    wakes: bool = False
    pause: float = 0.0
    real: bool = False


@dataclass(frozen=True, slots=True)
class Signals:
    """What a loop listens to: `stop` ends it; `news` says that there is something to send.

    This process has just written an event, or recorded the answer that the next one waited for.
    """

    stop: asyncio.Event
    news: asyncio.Event


def jobs_of(webhooks: Webhooks) -> tuple[Job, ...]:
    """Everything that runs by itself, for the worker and for whoever moves the sandbox's clock."""
    return (
        Job("webhooks", webhooks.run, 0.5, wakes=True, pause=0.005),
        Job("free_claims", webhooks.free_claims, 1.0, real=True),
        Job("due_orders", settle_due_orders, 1.0),
        Job("card_refunds", return_due_money, 1.0),
        Job("messages", send_due_messages, 1.0),
        Job("virtual_cards", settle_cards, 1.0),
        Job("tidy", tidy, 300.0, real=True),
        # By the service's clock, and nothing waits for it: whoever moves the clock does not run it on the way. A batch
        # takes a session for milliseconds; between two of them the other jobs have it.
        Job("retention", keep_terms, 300.0, pause=0.5, real=True),
    )


async def work(context: Context, signals: Signals, standstill: Standstill | None = None) -> None:
    """Run every job until told to stop; what is at work then is finished. In the sandbox all stand still at times."""
    worker = Worker(context.pool)
    # What was recorded wakes the job that sends the next: an order's events follow one another at once.
    webhooks = Webhooks(context, worker, signals.news.set)
    gate = standstill.jobs if standstill else InFlightGate(is_open=True)
    async with worker.living():
        try:
            async with asyncio.TaskGroup() as group:
                for job in jobs_of(webhooks):
                    group.create_task(_repeat(context, job, signals, gate))
                if standstill is not None:
                    group.create_task(standstill.keep(signals.stop, webhooks.rest))
        finally:
            await webhooks.close()


async def _repeat(context: Context, job: Job, signals: Signals, gate: InFlightGate) -> None:
    while not signals.stop.is_set():
        done = 0
        if job.wakes:
            signals.news.clear()
        async with gate.inside():
            if signals.stop.is_set():
                return
            try:
                done = await job.run(context)
            except (Refused, *GONE) as problem:
                log.warning(
                    "job waits", extra={"facts": {"job": job.name, "problem": type(problem).__name__}}
                )
            except Exception:
                # One job's bug stops neither the others nor itself for good.
                log.exception("job failed", extra={"facts": {"job": job.name}})
        if done:
            await asyncio.sleep(job.pause)
        else:
            await _rest(job, signals)


async def _rest(job: Job, signals: Signals) -> None:
    waits = [asyncio.ensure_future(signals.stop.wait())]
    if job.wakes:
        waits.append(asyncio.ensure_future(signals.news.wait()))
    await asyncio.wait(waits, timeout=job.rest, return_when=asyncio.FIRST_COMPLETED)
    for wait in waits:
        wait.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await wait
