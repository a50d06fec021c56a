"""The sandbox's clock: the database's clock plus an offset that is stored in the database. Production has no offset."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from datetime import datetime, timedelta

from cuota.db.sandbox import clock
from cuota.db.session import Session
from cuota.flows.context import utc_now
from cuota.flows.database_clock import DatabaseClock

REFRESH_SECONDS = 0.2


class SandboxClock(DatabaseClock):
    """The service's clock in one process. While `cuota time` moves the clock, the clock stops at each instant in turn."""

    every = REFRESH_SECONDS

    def __init__(self) -> None:
        super().__init__()
        self.ahead = timedelta(0)
        self.held_at: datetime | None = None
        self.moving = False
        self.closed = False

    def now(self) -> datetime:
        """Return the service's current time."""
        if self.moving and self.held_at is not None:
            return self.held_at
        return self.real_now() + self.ahead

    async def refresh(self, session: Session) -> None:
        """Read the real time and the clock's offset from the database."""
        before = self._uptime()
        seen = await clock.read(session)
        self._correct(before, seen.real)
        self.ahead, self.held_at, self.moving, self.closed = (
            seen.ahead,
            seen.held_at,
            seen.moving,
            seen.moving and seen.closed,
        )


class FrozenClock:
    """The clock of the process that moves time. It shows the instant to which it was set."""

    def __init__(self) -> None:
        self.at = utc_now()

    def now(self) -> datetime:
        """Return the instant to which the clock was set."""
        return self.at


@contextlib.asynccontextmanager
async def following(followed: DatabaseClock, session: Session) -> AsyncIterator[None]:
    """Read the clock again and again while the `with` block runs."""
    await followed.refresh(session)
    task = asyncio.create_task(followed.follow(session))
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
