"""Moves the sandbox's clock while the service runs, with separate connections and rails."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from typing import Any

from cuota import config
from cuota.config import Settings
from cuota.core.instant import TargetInstant
from cuota.flows.context import Context
from cuota.flows.sandbox.clock import FrozenClock
from cuota.flows.sandbox.move_time import Move, moving
from cuota.run import runtime
from cuota.work.advance import Advanced, ReportBatch, ReportProgress, advance


@dataclass(frozen=True)
class Traveler:
    """The right to move the clock. `context` has the clock that is moved."""

    context: Context
    frozen: FrozenClock
    move: Move

    async def to(
        self,
        target: TargetInstant,
        stop: asyncio.Event,
        tell: ReportBatch = lambda *_: None,
        watch: ReportProgress = lambda _: None,
    ) -> Advanced:
        """Advance the clock. `stop` stops it between two instants.

        `tell` is called after each instant with the work done, `watch` whenever the progress changes. Raises BadInstant.
        """
        return await advance(self.context, self.frozen, self.move, target, tell, stop, watch)


@contextlib.asynccontextmanager
async def traveling(settings: Settings, where: dict[str, Any]) -> AsyncIterator[Traveler]:
    """Take the right to move the clock, until the end of the block. Raises CannotMoveTime."""
    frozen = FrozenClock()
    async with (
        moving(where) as move,
        runtime.opened(settings, where, now=frozen.now, decides=False) as opened,
    ):
        address = not config.names_its_address()
        context = await runtime.as_served(opened, address=address)
        if address:
            # Links in messages use the address at which the service last listened.
            context = replace(
                context, settings=replace(context.settings, public_url=context.settings.audience)
            )
        frozen.at = (await move.reading()).now
        yield Traveler(context, frozen, move)
