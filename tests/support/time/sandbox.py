"""A whole service inside this process: web, worker and a movable clock, as in a process of `cuota serve`."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import asyncpg
import uvicorn

from cuota import config
from cuota.commands.time import travel
from cuota.core.instant import read_instant
from cuota.db.sandbox import clock as db_clock
from cuota.flows.context import Context
from cuota.flows.sandbox.clock import SandboxClock, following
from cuota.flows.sandbox.standstill import Standstill
from cuota.run import runtime
from cuota.run.mover import DeskMover
from cuota.web.app import make_app
from cuota.web.server.protocol import BoundedProtocol
from cuota.web.server.standing import StandstillMiddleware
from cuota.work.advance import Advanced, WorkDone
from cuota.work.loop import Signals, work
from support.makers import Merchant, Running, make_merchant
from support.ports import free_port


@dataclass
class Sandbox:
    """A running service with one merchant, its database's address for the owner, and what pauses its requests and jobs."""

    service: Running
    merchant: Merchant
    where: dict[str, Any]
    standstill: Standstill
    told: list[tuple[datetime, WorkDone]] = field(default_factory=list)

    @property
    def context(self) -> Context:
        return self.service.context

    async def advance(self, text: str) -> Advanced:
        """Move the clock as `cuota time advance` does, while the service runs."""

        def tell(at: datetime, done: WorkDone) -> None:
            self.told.append((at, done))

        return await travel(self.service.settings, self.where, read_instant(text), tell)

    async def now(self) -> datetime:
        """Return the service's time, as the database knows it."""
        return (await db_clock.read(self.context.pool)).now

    async def fetch(self, sql: str, *values: object) -> list[asyncpg.Record]:
        """Query as the owner, who may read everything."""
        connection = await asyncpg.connect(**self.where)
        try:
            return list(await connection.fetch(sql, *values))
        finally:
            await connection.close()

    async def events(self, order: dict[str, Any]) -> list[tuple[str, datetime]]:
        """Return an order's events and their times, in order."""
        rows = await self.context.pool.fetch(
            "SELECT type, created_at FROM events WHERE order_id = $1 ORDER BY sequence", order["orderId"]
        )
        return [(row["type"], row["created_at"]) for row in rows]


@contextlib.asynccontextmanager
async def serving(app: Any, port: int) -> AsyncIterator[None]:
    """Start web and worker as a process of `cuota serve` does. `app` is the edge, or a wrapper around it."""
    server = uvicorn.Server(
        uvicorn.Config(
            app, host="127.0.0.1", port=port, http=BoundedProtocol, ws="none", lifespan="off", log_config=None,
            access_log=False, server_header=False, timeout_graceful_shutdown=3,
        )
    )  # fmt: skip
    task = asyncio.create_task(server._serve())
    while not server.started:  # noqa: ASYNC110 - uvicorn says so by a flag only
        await asyncio.sleep(0.01)
    try:
        yield
    finally:
        server.should_exit = True
        await task


@contextlib.asynccontextmanager
async def opened_sandbox(settings: config.Settings, where: dict[str, Any]) -> AsyncIterator[Sandbox]:
    """Start a service on this database, with a merchant that captures by API calls."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    own = replace(settings, public_url=url, auth_url=url, audience=url)
    clock, signals = SandboxClock(), Signals(asyncio.Event(), asyncio.Event())
    async with (
        runtime.opened(own, where, pool_size=16, clock=clock) as context,
        following(clock, context.pool),
    ):
        mover = DeskMover(own, where, signals.stop)
        edge = make_app(context, mover)
        standstill = Standstill(where, clock, edge.forget)
        async with serving(StandstillMiddleware(edge, context, standstill), port):
            worker = asyncio.create_task(work(context, signals, standstill))
            try:
                running = Running(own, context, clock, edge)  # type: ignore[arg-type]
                async with make_merchant(running, defer_funds_capture=True) as merchant:
                    yield Sandbox(running, merchant, where, standstill)
            finally:
                signals.stop.set()
                await mover.close()
                await worker
