"""The sandbox's clock: the real one, moved by what the database says. In production nobody asks for it."""

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
    """Service time in one process. While the clock is being moved it stands still at each instant in turn."""

    def __init__(self) -> None:
        self.ahead = timedelta(0)
        self.held_at: datetime | None = None
        self.moving = False
        self.closed = False

    def now(self) -> datetime:
        """What the service says the time is."""
        if self.moving and self.held_at is not None:
            return self.held_at
        return utc_now() + self.ahead

    async def refresh(self, session: Session) -> None:
        """Read where the clock stands."""
        seen = await clock.read(session)
        self.ahead, self.held_at, self.moving, self.closed = (
            seen.ahead,
            seen.held_at,
            seen.moving,
            seen.moving and seen.closed,
        )

    async def follow(self, session: Session) -> None:
        """Keep reading it. A database that is away for a while leaves the clock as it is."""
        while True:
            await asyncio.sleep(REFRESH_SECONDS)
            try:
                await self.refresh(session)
            except (Refused, TimeoutError, *BUSY, *GONE) as problem:
                log.debug("clock not read", extra={"facts": {"problem": type(problem).__name__}})
            except Exception:
                # A clock that is followed no more would hold up everything for good.
                log.exception("clock not read")


class FrozenClock:
    """The clock of whoever moves time: it stands where it was put."""

    def __init__(self) -> None:
        self.at = utc_now()

    def now(self) -> datetime:
        """Where it stands."""
        return self.at


@contextlib.asynccontextmanager
async def following(moved: SandboxClock | None, session: Session) -> AsyncIterator[None]:
    """Inside, the clock is read again and again; with None (production) nothing is."""
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
