"""A serving process beside whoever moves the clock: jobs stand still, and while all is copied requests wait too."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import asyncpg

from cuota.db.locks import JOBS_LOCK
from cuota.db.pool import GONE, Connection
from cuota.db.sandbox import clock
from cuota.flows.sandbox.clock import SandboxClock

LOOK_SECONDS = 0.05
# Requests that are slower than this are not waited for: the database keeps their halves apart.
REQUESTS_END_SECONDS = 8.0
log = logging.getLogger("cuota.clock")


class InFlightGate:
    """A door with a count of who is inside."""

    def __init__(self, *, is_open: bool) -> None:
        self._opened = asyncio.Event()
        self._empty = asyncio.Event()
        self._empty.set()
        self._inside = 0
        if is_open:
            self._opened.set()

    @property
    def is_open(self) -> bool:
        """Whether one may go in at once."""
        return self._opened.is_set()

    @contextlib.asynccontextmanager
    async def inside(self) -> AsyncIterator[None]:
        """Wait until the door is open, and be counted."""
        # Asked again after each wait: it may have been shut before we had our turn.
        while not self._opened.is_set():
            await self._opened.wait()
        self.enter()
        try:
            yield
        finally:
            self.leave()

    def enter(self) -> None:
        """Go in through an open door; `leave` must follow."""
        self._inside += 1
        self._empty.clear()

    def leave(self) -> None:
        """Go out."""
        self._inside -= 1
        if not self._inside:
            self._empty.set()

    def open(self) -> None:
        """Let everybody in."""
        self._opened.set()

    async def shut(self) -> None:
        """Let nobody in, and wait until everybody is out."""
        self._opened.clear()
        await self._empty.wait()


async def _nothing() -> None:
    """Where no jobs run."""


class Standstill:
    """One in each serving process of the sandbox. `forget` drops what the process remembers of the database."""

    def __init__(self, where: dict[str, Any], moved: SandboxClock, forget: Callable[[], None]) -> None:
        self.moved = moved
        self.jobs = InFlightGate(is_open=False)
        self.requests = InFlightGate(is_open=not moved.closed)
        self._where = where
        self._forget = forget

    async def keep(self, stop: asyncio.Event, rest: Callable[[], Awaitable[None]] = _nothing) -> None:
        """Until `stop`: share the lock while jobs run; give it back, with nothing under way, when the clock moves.

        `rest` waits for what the jobs have started and not finished: webhooks.
        """
        while not stop.is_set():
            try:
                async with clock.connected(self._where) as connection:
                    await self._share(connection, stop, rest)
            except (asyncpg.PostgresError, TimeoutError, *GONE) as problem:
                log.warning("worker waits", extra={"facts": {"problem": type(problem).__name__}})
                await self.jobs.shut()
                await _pause(stop, 10 * LOOK_SECONDS)
            while self.moved.moving and not stop.is_set():
                await _pause(stop, LOOK_SECONDS)
            if not self.requests.is_open:
                self._forget()
                self.requests.open()
        self.jobs.open()
        self.requests.open()

    async def _share(
        self, connection: Connection, stop: asyncio.Event, rest: Callable[[], Awaitable[None]]
    ) -> None:
        while not self.moved.moving and not await clock.try_lock(connection, JOBS_LOCK, shared=True):
            if await _pause(stop, 2 * LOOK_SECONDS):
                return
        if self.moved.moving:
            return
        self.jobs.open()
        while not self.moved.moving and not connection.is_closed():
            if await _pause(stop, LOOK_SECONDS):
                return
        await self.jobs.shut()
        await rest()
        if self.moved.closed:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.requests.shut(), REQUESTS_END_SECONDS)


async def _pause(stop: asyncio.Event, seconds: float) -> bool:
    """Wait a little; True at once when it is time to stop."""
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(stop.wait(), seconds)
    return stop.is_set()
