"""The whole application on loopback, in the tests' process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import uvicorn

from cuota import config
from cuota.run import runtime
from cuota.web.app import make_app
from cuota.web.server.metrics import count
from cuota.web.server.protocol import BoundedProtocol
from support.makers import Clock, Running


@asynccontextmanager
async def running(settings: config.Settings, where: dict[str, object]) -> AsyncIterator[Running]:
    """Run the whole application in this process, on loopback and the port of its public_url, with a movable clock."""
    clock = Clock()
    async with runtime.opened(settings, where, pool_size=16, now=clock.now) as context:
        moved = replace(context, happened=count)
        app = make_app(moved)
        port = int(settings.public_url.rpartition(":")[2])
        server = uvicorn.Server(
            uvicorn.Config(
                app,
                host="127.0.0.1",
                port=port,
                http=BoundedProtocol,
                ws="none",
                lifespan="off",
                log_config=None,
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=3,
            )
        )
        task = asyncio.create_task(server._serve())
        while not server.started:  # noqa: ASYNC110 - uvicorn says so by a flag only
            await asyncio.sleep(0.01)
        try:
            yield Running(settings, moved, clock, app)
        finally:
            server.should_exit = True
            await task
