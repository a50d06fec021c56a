"""`cuota work`: runs the background jobs without the web application. Any number may run; each job claims its rows in the database."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import uvloop

from cuota import config
from cuota.core.order.event import Event
from cuota.flows.database_clock import DatabaseClock
from cuota.flows.merchant.sandbox_account import give_test_accounts
from cuota.flows.sandbox.clock import SandboxClock, following
from cuota.flows.sandbox.standstill import Standstill
from cuota.run import runtime
from cuota.run.json_lines import set_up_logging
from cuota.run.signals import stop_signals
from cuota.work.loop import Signals, work


def work_alone() -> int:
    """Run until SIGTERM, Ctrl-C or the end of the terminal, and let the jobs in progress finish."""
    settings = config.load()
    set_up_logging(settings.log_level)
    with runtime.database(settings) as where, asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(runtime.migrated(settings, where))
        runner.run(runtime.check_database(settings, where))
        runner.run(_work(settings, where))
    return 0


async def _work(settings: config.Settings, where: dict[str, object]) -> None:
    clock = SandboxClock() if settings.sandbox else None
    ticking = clock or DatabaseClock()
    signals = Signals(asyncio.Event(), asyncio.Event())

    def happened(event: Event) -> None:
        del event
        signals.news.set()

    async with (
        runtime.opened(settings, where, clock=ticking, decides=False) as opened,
        following(ticking, opened.pool),
    ):
        await runtime.note_served(opened, decides=False)
        await give_test_accounts(opened)
        loop = asyncio.get_running_loop()
        for number in stop_signals():
            loop.add_signal_handler(number, signals.stop.set)
        standstill = Standstill(where, clock, _nothing_remembered) if clock else None
        print(json.dumps({"working": True, "environment": settings.environment}), flush=True)
        await work(replace(opened, happened=happened), signals, standstill)


def _nothing_remembered() -> None:
    """Do nothing: a worker caches nothing of the database."""
