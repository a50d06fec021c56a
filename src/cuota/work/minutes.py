"""Reports what this process answered, once a minute, in a task of its own."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from collections.abc import Callable

from cuota.core.operator.traffic import TrafficTotals
from cuota.core.refusal import Refused
from cuota.db.pool import GONE
from cuota.flows.context import Context, utc_now
from cuota.flows.operator.report_minute import MinuteReporter
from cuota.flows.sandbox.standstill import InFlightGate

MINUTE_SECONDS = 60.0
# Each process reports at its own random time this long after the end of a minute, so that they do not all write at once.
EARLIEST_SECONDS, LATEST_SECONDS = 0.2, 5.0
log = logging.getLogger("cuota.work")


async def report_minutes(
    context: Context, counted: Callable[[], TrafficTotals], stop: asyncio.Event, gate: InFlightGate
) -> None:
    """Report at the start, each minute, and once more at the end."""
    reporter = MinuteReporter(context, counted)
    moment = random.uniform(EARLIEST_SECONDS, LATEST_SECONDS)  # noqa: S311 - spreads the writes
    await _rest(stop, moment)
    while True:
        async with gate.inside():
            try:
                await reporter.report()
            except (Refused, *GONE) as problem:
                # The next report has these figures, too.
                facts = {"job": "minutes", "problem": type(problem).__name__}
                log.warning("job waits", extra={"facts": facts})
            except Exception:
                log.exception("job failed", extra={"facts": {"job": "minutes"}})
        if stop.is_set():
            return
        await _rest(stop, _until_next(utc_now().timestamp(), moment))


def _until_next(now: float, moment: float) -> float:
    """Return the seconds until the moment of this process in the next minute."""
    return MINUTE_SECONDS - (now - moment) % MINUTE_SECONDS


async def _rest(stop: asyncio.Event, seconds: float) -> None:
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(stop.wait(), seconds)
