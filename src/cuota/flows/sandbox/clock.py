"""The sandbox's clock: the real clock plus an offset that is stored in the database. Production does not use it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from datetime import datetime, timedelta

from cuota.core.refusal import Refused
from cuota.db.pool import BUSY, GONE
from cuota.db.sandbox import clock
from cuota.db.session import Session
from cuota.flows.context import utc_now

REFRESH_SECONDS = 0.2
log = logging.getLogger("cuota.clock")


class SandboxClock:
    """The service's clock in one process. While `cuota time` moves the clock, the clock stops at each instant in turn."""

    def __init__(self) -> None:
        self.ahead = timedelta(0)
        self.held_at: datetime | None = None
        self.moving = False
        self.closed = False

    def now(self) -> datetime:
        """Return the service's current time."""
        if self.moving and self.held_at is not None:
            return self.held_at
        return utc_now() + self.ahead

    async def refresh(self, session: Session) -> None:
        """Read the clock's offset from the database."""
        seen = await clock.read(session)
        self.ahead, self.held_at, self.moving, self.closed = (
            seen.ahead,
            seen.held_at,
            seen.moving,
            seen.moving and seen.closed,
        )

    async def follow(self, session: Session) -> None:
        """Read the offset again and again, until canceled. While the database cannot be reached, the offset stays."""
        while True:
            await asyncio.sleep(REFRESH_SECONDS)
            try:
                await self.refresh(session)
            except (Refused, TimeoutError, *BUSY, *GONE) as problem:
                log.debug("clock not read", extra={"facts": {"problem": type(problem).__name__}})
            except Exception:
                # The loop must continue: if this process stopped reading the clock, a move of the clock would wait
                # forever.
                log.exception("clock not read")


class FrozenClock:
    """The clock of the process that moves time. It shows the instant to which it was set."""

    def __init__(self) -> None:
        self.at = utc_now()

    def now(self) -> datetime:
        """Return the instant to which the clock was set."""
        return self.at


@contextlib.asynccontextmanager
async def following(moved: SandboxClock | None, session: Session) -> AsyncIterator[None]:
    """Read the clock again and again while the `with` block runs. With None (production), do nothing."""
    if moved is None:
        yield
        return
    await moved.refresh(session)
    task = asyncio.create_task(moved.follow(session))
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
