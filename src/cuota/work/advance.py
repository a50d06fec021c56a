"""Moves the sandbox's clock forward. All work that becomes due meanwhile is done at its own time, in order."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime

from cuota.core.instant import TargetInstant
from cuota.core.order.event import Event
from cuota.db.plan import card_rails
from cuota.db.sandbox import clock
from cuota.db.webhook.hanging_receivers import hanging
from cuota.flows.context import Context
from cuota.flows.plan.fetch_card_events import begin_fetching
from cuota.flows.sandbox.clock import FrozenClock
from cuota.flows.sandbox.move_time import Move
from cuota.flows.webhook.deliver_webhooks import PUBLISHED_AT_ONCE
from cuota.flows.webhook.pace_webhooks import HurriedPace
from cuota.work.loop import Job, jobs_of
from cuota.work.webhooks import Webhooks

# At each instant the jobs run again until nothing is due. Requests from outside continue meanwhile, and a receiver may
# answer each event with a call that creates the next event. So after this many rounds the clock moves on, and the rest is
# done at the next instant.
MOST_TURNS = 10


@dataclass(slots=True)
class WorkDone:
    """The work done at one instant or in the whole move: counts by job, events by type, payments and messages as text.

    `webhooks` counts all attempts, the acknowledged attempts, and the attempts that timed out.
    """

    jobs: Counter[str] = field(default_factory=Counter)
    events: Counter[str] = field(default_factory=Counter)
    paid: Counter[str] = field(default_factory=Counter)
    webhooks: Counter[str] = field(default_factory=Counter)

    def __bool__(self) -> bool:
        return bool(self.jobs or self.events or self.webhooks)


@dataclass(frozen=True, slots=True)
class Advanced:
    """The times before and after a move. `stopped` means that the advance was interrupted between two instants.

    `hung` are the hosts of the receivers that timed out.
    """

    before: datetime
    after: datetime
    instants: int
    done: WorkDone
    stopped: bool
    hung: list[str]


@dataclass(frozen=True, slots=True)
class AdvanceProgress:
    """The progress of an advance: the time on the clock, how many webhooks wait for an answer, and the attempts so far."""

    before: datetime
    at: datetime
    target: datetime
    under_way: int
    attempts: int
    acknowledged: int
    hung: int


ReportBatch = Callable[[datetime, WorkDone], None]
ReportProgress = Callable[[AdvanceProgress], None]


async def advance(
    context: Context,
    frozen: FrozenClock,
    move: Move,
    asked: TargetInstant,
    tell: ReportBatch,
    stop: asyncio.Event,
    watch: ReportProgress = lambda _: None,
) -> Advanced:
    """Move the clock.

    `context` has the frozen clock. `watch` is called often; `tell` is called with the work done at each instant. Raises
    BadInstant.
    """
    before = frozen.at = await move.hold((await move.reading()).now)
    target = asked.after(before)

    def look() -> None:
        counted, hung = pace.attempts, len(pace.timed_out)
        facts = counted["attempts"], counted["acknowledged"], hung
        watch(AdvanceProgress(before, frozen.at, target, way.webhooks.under_way, *facts))

    pace = HurriedPace(await hanging(context.pool), look)
    way = _Way(context, tell, pace, look, stop)
    await begin_fetching(context)
    # The events of card processors are fetched once for each day of the move, and at the end.
    await card_rails.fetch_soon(context.pool, target)
    try:
        await way.settle(before)
        while not stop.is_set():
            at = await clock.next_due(context.pool, frozen.at, context.settings.write_off_days)
            if at is None or at > target:
                frozen.at = await move.hold(target)
                await card_rails.fetch_soon(context.pool, target)
                await way.settle(target)
                break
            frozen.at = await move.hold(at)
            await way.settle(frozen.at)
    finally:
        await way.webhooks.close()
    hung = sorted({lane.host for lane in pace.timed_out})
    stopped = frozen.at < target or not way.webhooks.sends
    return Advanced(before, frozen.at, way.instants, way.total, stopped=stopped, hung=hung)


class _Way:
    """Runs all jobs at each instant, and repeats them until a whole round does nothing.

    After `stop`, the jobs still finish the instant, but send no more webhooks, because very many receivers may hang. The service sends
    the rest later.
    """

    def __init__(
        self,
        context: Context,
        tell: ReportBatch,
        pace: HurriedPace,
        look: Callable[[], None],
        stop: asyncio.Event,
    ) -> None:
        self.context = replace(context, happened=self._happened)
        self.webhooks = Webhooks(self.context, pace=pace)
        self._pace, self._look, self._stop = pace, look, stop
        self.total = WorkDone()
        self.instants = 0
        self._jobs: tuple[Job, ...] = tuple(job for job in jobs_of(self.webhooks) if not job.real)
        self._tell = tell
        self._here = WorkDone()

    def _happened(self, event: Event) -> None:
        self._here.events[event.type] += 1

    async def settle(self, at: datetime) -> None:
        """Do everything that is due at this instant, and everything that follows from it at the same instant."""
        self._here, attempted = WorkDone(), self._pace.attempts.copy()
        for _ in range(MOST_TURNS):
            left = await clock.count_due(self.context.pool, at, self.context.settings.write_off_days)
            if not left:
                break
            while left > 0 and (done := await self._round()):
                left -= done
            if left > 0:
                # A whole round did nothing. What is still due can only be done at a later instant, or never.
                break
        self._here.webhooks.update(self._pace.attempts - attempted)
        if self._here:
            self.instants += 1
            self._here.paid.update(await clock.done_at(self.context.pool, at))
            self.total.paid.update(self._here.paid)
            self.total.jobs.update(self._here.jobs)
            self.total.events.update(self._here.events)
            self.total.webhooks.update(self._here.webhooks)
            self._tell(at, self._here)

    async def _round(self) -> int:
        """Run every job once. Return how much was done that can lead to more work."""
        self.webhooks.sends = not self._stop.is_set()
        done = {job.name: await job.run(self.context) for job in self._jobs}
        self._look()
        await self.webhooks.rest()
        published = self.webhooks.published
        done["webhooks"] -= published
        # Webhook attempts are counted where they are made, because this count includes deliveries that were only
        # postponed.
        self._here.jobs.update({name: count for name, count in done.items() if count and name != "webhooks"})
        # Publishing also adds the deliveries in the same round, so it leads to more work only when there were too many
        # events.
        return sum(done.values()) + (published if published >= PUBLISHED_AT_ONCE else 0)
