"""Each process writes the counts of its requests once a minute, so that a page can show the figures of all machines."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path

from cuota.core.operator.traffic import TrafficTotals
from cuota.db.operator import minutes
from cuota.db.operator.minutes import Minute, Process
from cuota.flows.context import Context, utc_now

_STATM = Path("/proc/self/statm")


class MinuteReporter:
    """Reports for one process. `counted` returns the counts since the start of the process; the metrics use them too."""

    def __init__(self, context: Context, counted: Callable[[], TrafficTotals]) -> None:
        self._context, self._counted = context, counted
        self._before, self._at = counted(), utc_now()
        machine = socket.gethostname()[:100] or "unknown"
        self._process = Process(context.new_id(), machine, os.getpid(), version("cuota"), self._at)

    async def report(self) -> None:
        """Write the counts since the last report that was written."""
        # This runs in a thread, because adding up the counters of all routes may take ten milliseconds.
        counted, now = await asyncio.to_thread(self._counted), utc_now()
        span = (now - self._at).total_seconds()
        if span <= 0:
            return
        minute = Minute(now, self._process, span, _memory(), counted.since(self._before))
        await minutes.add(self._context.pool, minute)
        # Set only after a successful write: if a write fails, the next report includes its counts.
        self._before, self._at = counted, now


def _memory() -> int | None:
    """Return the resident memory of this process in bytes, or None if the system does not report the number."""
    try:
        return int(_STATM.read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, ValueError, IndexError):
        return None
