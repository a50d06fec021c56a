"""Moves the sandbox's clock for the merchant's dashboard, as a task of a serving process.

It runs the flow of `cuota time advance`, with separate connections and rails. Meanwhile this process answers requests.
Its background jobs pause, as in every process.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import Any

from cuota.config import Settings
from cuota.core.instant import TargetInstant
from cuota.flows.sandbox.move_time import CannotMoveTime
from cuota.run.travel import traveling
from cuota.work.advance import Advanced

# The page waits for a short move. During a longer move, the page shows the progress.
WAIT_SECONDS = 2.5
log = logging.getLogger("cuota.clock")


class DeskMover:
    """Moves the clock, one move at a time."""

    def __init__(self, settings: Settings, where: dict[str, Any]) -> None:
        self._settings = settings
        self._where = where
        self._stop = asyncio.Event()
        self._task: asyncio.Task[Advanced] | None = None

    async def start(self, target: TargetInstant) -> bool:
        """Begin to move the clock. Return whether the move has already ended. Raises CannotMoveTime or BadInstant."""
        if self._task is not None and not self._task.done():
            raise CannotMoveTime("The clock is being moved right now. Wait until it is there.")
        self._task = asyncio.create_task(self._move(target))
        done, _ = await asyncio.wait({self._task}, timeout=WAIT_SECONDS)
        if done:
            self._task.result()
        else:
            self._task.add_done_callback(_tell)
        return bool(done)

    async def _move(self, target: TargetInstant) -> Advanced:
        async with traveling(self._settings, self._where) as traveler:
            return await traveler.to(target, self._stop)

    async def close(self) -> None:
        """Stop the move at the next instant, because the process ends."""
        self._stop.set()
        if self._task is not None:
            with contextlib.suppress(Exception):  # the error was logged when it happened
                await self._task


def _tell(task: asyncio.Task[Advanced]) -> None:
    if not task.cancelled() and (problem := task.exception()) is not None:
        log.error("the clock was not moved to the end", exc_info=problem)
