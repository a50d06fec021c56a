"""The worker's loop: small jobs, each with its own interval.

Any number of workers may run, because each job claims its rows.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from cuota.core.operator.traffic import NOTHING, TrafficTotals
from cuota.core.refusal import Refused
from cuota.db.pool import GONE
from cuota.db.workers import Worker
from cuota.flows.context import Context
from cuota.flows.desk.index_orders import index_orders
from cuota.flows.desk.send_links import send_links
from cuota.flows.desk.send_notices import send_notices
from cuota.flows.dispute.close_disputes import settle_due_disputes
from cuota.flows.dispute.send_answers import send_answers
from cuota.flows.onboarding.screen_names import screen_due_names
from cuota.flows.operator.send_operator_links import send_operator_links
from cuota.flows.payout.close_batches import close_batches
from cuota.flows.payout.send_payouts import NO_BANK_RAIL
from cuota.flows.payout.settle_movements import settle_movements
from cuota.flows.plan.apply_card_events import apply_card_events
from cuota.flows.plan.fetch_card_events import fetch_card_events
from cuota.flows.plan.write_off_installments import write_off_installments
from cuota.flows.privacy.forget_cards import forget_cards
from cuota.flows.risk.settle_reservations import settle_reservations
from cuota.flows.risk.watch_reviews import watch_reviews
from cuota.flows.sandbox.standstill import InFlightGate, Standstill
from cuota.flows.webhook.park_removed import park_removed
from cuota.work.card_refunds import return_due_money
from cuota.work.due_orders import settle_due_orders
from cuota.work.messages import send_due_mails, send_due_texts
from cuota.work.minutes import report_minutes
from cuota.work.payouts import settle_payouts
from cuota.work.retention import keep_terms
from cuota.work.tidy import forget_requests, tidy
from cuota.work.virtual_cards import settle_cards
from cuota.work.webhooks import Webhooks

log = logging.getLogger("cuota.work")


@dataclass(frozen=True, slots=True)
class Job:
    """A job returns how much it did. If it did nothing, it waits `rest` seconds; with `wakes`, `Signals.news` ends the wait.

    `pause` is the wait after a run that did something. Work that arrives meanwhile is batched, which saves a busy
    service work and costs a quiet one nothing. A `real` job does not run while the sandbox's clock is moved; most of these jobs
    use the real clock.
    """

    name: str
    run: Callable[[Context], Awaitable[int]]
    rest: float
    wakes: bool = False
    pause: float = 0.0
    real: bool = False


@dataclass(frozen=True, slots=True)
class Signals:
    """The events that a loop waits for: `stop` ends the loop, `news` means that there is something to send.

    `news` is set when this process has just written an event, or has recorded the answer that a later event waited for.
    """

    stop: asyncio.Event
    news: asyncio.Event


def jobs_of(webhooks: Webhooks) -> tuple[Job, ...]:
    """Return all background jobs, for the worker and for moving the sandbox's clock."""
    return (
        Job("webhooks", webhooks.run, 0.5, wakes=True, pause=0.005),
        Job("parking", park_removed, 5.0, pause=0.05),
        Job("free_claims", webhooks.free_claims, 1.0, real=True),
        Job("due_orders", settle_due_orders, 1.0),
        Job("write_offs", write_off_installments, 5.0),
        Job("card_refunds", return_due_money, 1.0),
        Job("card_events_fetched", fetch_card_events, 15.0),
        Job("card_events", apply_card_events, 1.0),
        Job("disputes", settle_due_disputes, 1.0),
        Job("chargeback_answers", send_answers, 1.0),
        Job("payouts", settle_payouts, 1.0),
        # Nothing waits for the screening of names, so it does not run while the clock is moved.
        Job("screening", screen_due_names, 2.0, real=True),
        Job("texts", send_due_texts, 1.0),
        Job("mails", send_due_mails, 1.0),
        Job("sign_in_links", send_links, 1.0, real=True),
        Job("desk_notices", send_notices, 1.0, real=True),
        Job("operator_links", send_operator_links, 1.0, real=True),
        Job("order_terms", index_orders, 1.0, pause=0.05, real=True),
        Job("virtual_cards", settle_cards, 1.0),
        Job("settlement_lines", settle_movements, 1.0, pause=0.05),
        Job("batches", close_batches, 1.0),
        Job("reviews_watched", watch_reviews, 15.0, real=True),
        Job("reservations", settle_reservations, 5.0, real=True),
        Job("card_erasures", forget_cards, 60.0, real=True),
        Job("tidy", tidy, 300.0, real=True),
        Job("request_log", forget_requests, 60.0, pause=0.2, real=True),
        # This job uses the service's clock. Nothing waits for it, so it does not run while the clock is moved. Each batch
        # uses a session for milliseconds and leaves it to the other jobs in between.
        Job("retention", keep_terms, 300.0, pause=0.5, real=True),
    )


def _no_requests() -> TrafficTotals:
    return NOTHING


async def work(
    context: Context,
    signals: Signals,
    standstill: Standstill | None = None,
    counted: Callable[[], TrafficTotals] = _no_requests,
) -> None:
    """Run every job until `stop`, then let the running jobs finish. `counted` returns what this process has answered.

    In the sandbox, jobs also pause while the clock is moved.
    """
    if context.rails.bank is None:
        log.warning(NO_BANK_RAIL)
    worker = Worker(context.pool)
    # A recorded result wakes the job that sends the next event, so the events of one order follow each other at once.
    webhooks = Webhooks(context, worker, signals.news.set)
    gate = standstill.jobs if standstill else InFlightGate(is_open=True)
    async with worker.living():
        try:
            async with asyncio.TaskGroup() as group:
                for job in jobs_of(webhooks):
                    group.create_task(_repeat(context, job, signals, gate))
                group.create_task(report_minutes(context, counted, signals.stop, gate))
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
                # A bug in one job must not stop the other jobs, and must not stop this job permanently.
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
