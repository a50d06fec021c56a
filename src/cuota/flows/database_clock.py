"""The service's clock: the database's clock, so that all machines have the same time.

A machine whose own clock is wrong, or is set while the service runs, would otherwise charge cards on wrong days, and take over work that
another machine is doing.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from uuid import UUID

from cuota.core.refusal import Refused
from cuota.db import server_time
from cuota.db.pool import BUSY, GONE
from cuota.db.session import Session
from cuota.flows.context import id_at, utc_now

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
log = logging.getLogger("cuota.clock")


def uptime() -> float:
    """Return the seconds since some moment. Nobody can set this clock; on Linux it also counts while the machine sleeps."""
    return time.clock_gettime(getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC))


class DatabaseClock:
    """The database's time in one process: read every second, and continued with `uptime` in between."""

    every = 1.0

    def __init__(self, uptime: Callable[[], float] = uptime) -> None:
        self._uptime = uptime
        self._known: tuple[datetime, float] | None = None

    def now(self) -> datetime:
        """Return the service's current time. In the sandbox, this has an offset."""
        return self.real_now()

    def real_now(self) -> datetime:
        """Return the database's time. Before the first `refresh`, this is the time of the machine's own clock."""
        return self._at(self._uptime())

    def new_id(self) -> UUID:
        """Return a new id with the database's time: lists of orders expect that an order's id is as old as the order."""
        if self._known is None:
            return id_at(time.time_ns())
        at, since = self._known
        known = (at - _EPOCH) // timedelta(microseconds=1) * 1000
        return id_at(known + int((self._uptime() - since) * 1e9))

    def _at(self, up: float) -> datetime:
        if self._known is None:
            return utc_now()
        at, since = self._known
        return at + timedelta(seconds=up - since)

    async def refresh(self, session: Session) -> None:
        """Read the time from the database."""
        before = self._uptime()
        self._correct(before, await server_time.read(session))

    def _correct(self, before: float, at: datetime) -> None:
        """Set the clock by the database's time `at`, which was read at some moment between `before` and now.

        As long as the two may agree, nothing changes: so the clock does not jump back and forth by the length of a query.
        """
        after = self._uptime()
        if self._known is None:
            self._known = at, after
        elif self._at(before) > at:
            self._known = at, before
        elif self._at(after) < at:
            self._known = at, after

    async def follow(self, session: Session) -> None:
        """Read the time again and again, until canceled. While the database cannot be reached, the clock runs on."""
        while True:
            await asyncio.sleep(self.every)
            try:
                await self.refresh(session)
            except (Refused, TimeoutError, *BUSY, *GONE) as problem:
                log.debug("clock not read", extra={"facts": {"problem": type(problem).__name__}})
            except Exception:
                # The loop must continue: if this process stopped reading the clock, a move of the sandbox's clock would wait
                # forever.
                log.exception("clock not read")
