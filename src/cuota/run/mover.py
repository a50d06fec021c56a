"""Moves the sandbox's clock for the dashboards, and saves and restores forks, as a task of a serving process.

It runs the flows of `cuota time`, with separate connections and rails. Meanwhile this process answers requests.
Its background jobs pause, as in every process.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

import asyncpg

from cuota.config import Settings
from cuota.core.instant import TargetInstant
from cuota.flows.sandbox import fork_sandbox
from cuota.flows.sandbox.move_time import CannotMoveTime
from cuota.run.stopping import end_soon
from cuota.run.travel import traveling
from cuota.work.advance import Advanced

# The page waits for a short move. During a longer move, the page shows the progress.
WAIT_SECONDS = 2.5
ONLY_THE_OWNER = "Only the owner of the tables can do that, and this service does not connect as the owner. Use cuota time instead."
log = logging.getLogger("cuota.clock")


class DeskMover:
    """Moves the clock, and saves and restores forks, one at a time. `stop` ends a move at the next instant."""

    def __init__(self, settings: Settings, where: dict[str, Any], stop: asyncio.Event) -> None:
        self._settings = settings
        self._where = where
        self._stop = stop
        self._task: asyncio.Task[Any] | None = None

    async def start(self, target: TargetInstant) -> bool:
        """Begin to move the clock. Return whether the move has already ended. Raises CannotMoveTime or BadInstant."""
        self._task = self._alone(self._move(target))
        done, _ = await asyncio.wait({self._task}, timeout=WAIT_SECONDS)
        if done:
            self._task.result()
        else:
            self._task.add_done_callback(_tell)
        return bool(done)

    async def fork(self, name: str) -> None:
        """Save a copy of the whole sandbox. Raises CannotMoveTime."""
        await self._on_forks(fork_sandbox.fork(self._where, name))

    async def rewind(self, name: str) -> None:
        """Restore a fork. Raises CannotMoveTime."""
        await self._on_forks(fork_sandbox.rewind(self._where, name))

    async def forget(self, name: str) -> None:
        """Delete a fork. Raises CannotMoveTime."""
        await self._on_forks(fork_sandbox.forget(self._where, name))

    async def _on_forks(self, work: Coroutine[Any, Any, object]) -> None:
        self._task = self._alone(work)
        try:
            # The browser may give up. The copy is completed anyway.
            await asyncio.shield(self._task)
        except asyncpg.InsufficientPrivilegeError:
            raise CannotMoveTime(ONLY_THE_OWNER) from None

    def _alone(self, work: Coroutine[Any, Any, object]) -> asyncio.Task[Any]:
        if self._task is not None and not self._task.done():
            work.close()
            raise CannotMoveTime(
                "The clock is being moved right now, or the sandbox is being copied. Wait until that has ended."
            )
        return asyncio.create_task(work)

    async def _move(self, target: TargetInstant) -> Advanced:
        async with traveling(self._settings, self._where) as traveler:
            return await traveler.to(target, self._stop)

    async def close(self) -> None:
        """Give a move a moment to reach the next instant after `stop`, because the process ends. Then cancel it."""
        if self._task is not None:
            await end_soon(self._task)


def _tell(task: asyncio.Task[Advanced]) -> None:
    if not task.cancelled() and (problem := task.exception()) is not None:
        log.error("the clock was not moved to the end", exc_info=problem)
