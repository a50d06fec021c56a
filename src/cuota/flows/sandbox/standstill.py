"""A serving process while the sandbox's clock is moved: background jobs pause, and during a copy requests wait too."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import asyncpg

from cuota.db.locks import JOBS_LOCK
from cuota.db.pool import GONE, Connection
from cuota.db.sandbox import clock
from cuota.flows.sandbox.clock import SandboxClock

LOOK_SECONDS = 0.05
# How long to wait for requests in progress. The move does not wait for slower ones, because the database keeps their
# parts consistent.
REQUESTS_END_SECONDS = 8.0
# After this time without the lock, the log says why no job runs. A move renews its right every few seconds, so this is no move in progress.
HELD_UP_SECONDS = 15.0
log = logging.getLogger("cuota.clock")


class InFlightGate:
    """A gate that counts the tasks inside it."""

    def __init__(self, *, is_open: bool) -> None:
        self._opened = asyncio.Event()
        self._empty = asyncio.Event()
        self._empty.set()
        self._inside = 0
        if is_open:
            self._opened.set()

    @property
    def is_open(self) -> bool:
        """Return whether the gate is open."""
        return self._opened.is_set()

    @contextlib.asynccontextmanager
    async def inside(self) -> AsyncIterator[None]:
        """Wait until the gate is open, then be counted as inside."""
        # Check again after each wait, because the gate may have been closed again.
        while not self._opened.is_set():
            await self._opened.wait()
        self.enter()
        try:
            yield
        finally:
            self.leave()

    def enter(self) -> None:
        """Enter through the open gate; `leave` must follow."""
        self._inside += 1
        self._empty.clear()

    def leave(self) -> None:
        """Leave through the gate."""
        self._inside -= 1
        if not self._inside:
            self._empty.set()

    def open(self) -> None:
        """Open the gate."""
        self._opened.set()

    async def shut(self) -> None:
        """Close the gate, and wait until nobody is inside."""
        self._opened.clear()
        await self._empty.wait()


async def _nothing() -> None:
    """Do nothing, because no jobs run in this process."""


class Standstill:
    """Pauses jobs and requests; there is one in each serving process of the sandbox.

    `forget` clears the caches of the process.
    """

    def __init__(self, where: dict[str, Any], moved: SandboxClock, forget: Callable[[], None]) -> None:
        self.moved = moved
        self.jobs = InFlightGate(is_open=False)
        self.requests = InFlightGate(is_open=not moved.closed)
        self._where = where
        self._forget = forget

    async def keep(self, stop: asyncio.Event, rest: Callable[[], Awaitable[None]] = _nothing) -> None:
        """Hold the shared lock while jobs run, until `stop`.

        When the clock is moved, finish the work in progress and release the lock.

        `rest` waits for the webhooks that the jobs have started and not finished.
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
        since = time.monotonic()
        while not self.moved.moving and not await clock.try_lock(connection, JOBS_LOCK, shared=True):
            if time.monotonic() - since > HELD_UP_SECONDS:
                since = time.monotonic()
                log.warning(
                    "no background job runs: a process that moves the clock or copies the sandbox has stopped in the middle "
                    "(for example by Ctrl-Z); continue it or end it"
                )
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
    """Wait a little. Return True at once when it is time to stop."""
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(stop.wait(), seconds)
    return stop.is_set()
