"""One worker process: the web application and the background work on one event loop.

Started by `cuota serve` with the listening socket; it ends cleanly on SIGTERM, and when its parent is gone.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable
from dataclasses import replace

import uvicorn
import uvloop
from starlette.types import ASGIApp

from cuota import config
from cuota.core.order.event import Event
from cuota.flows.context import Context, utc_now
from cuota.flows.sandbox.clock import SandboxClock, following
from cuota.flows.sandbox.standstill import Standstill
from cuota.run import runtime
from cuota.web.app import make_app, make_watched
from cuota.web.server.deadlines import allow_open_files
from cuota.web.server.early import early
from cuota.web.server.edge import Edge, JsonLines
from cuota.web.server.known_host import KnownHost
from cuota.web.server.metrics import count, count_code, count_decision
from cuota.web.server.standing import StandstillMiddleware
from cuota.work.loop import Signals, work

# While stopping: so long new connections are still taken and answered, each closed after its answer, and so long
# the ones that were taken may still send their request. Together with the slowest request well under 10 seconds.
TAKE_SECONDS = 1.0
LINGER_SECONDS = 1.0
SLOWEST_SECONDS = 6
PARENT_CHECK_SECONDS = 1.0
log = logging.getLogger("cuota.run.process")


class DrainingServer(uvicorn.Server):
    """uvicorn closes idle connections at once when it stops, and a request may just be on its way on one.

    This one says `Connection: close` with every answer first, then stops taking connections, then closes.
    """

    def __init__(self, settings: uvicorn.Config, edge: Edge, stopping: asyncio.Event) -> None:
        super().__init__(settings)
        self._edge = edge
        self._stopping = stopping

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Drain, then stop."""
        self._edge.drain()
        # The background work ends first: the requests that are left have the process to themselves.
        self._stopping.set()
        await asyncio.sleep(TAKE_SECONDS)
        for server in self.servers:
            server.close()
        for listener in sockets or []:
            listener.close()
        await asyncio.sleep(LINGER_SECONDS)
        await super().shutdown(sockets=[])


def set_up_logging(level: str) -> None:
    """JSON lines on standard error; ours and uvicorn's warnings."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("cuota").setLevel(level.upper())


@contextlib.asynccontextmanager
async def _watched(edge: Edge, listener: socket.socket | None) -> AsyncIterator[None]:
    """Metrics and health on a port of their own, until the service has stopped: so long it says that it is stopping."""
    if listener is None:
        yield
        return
    app = make_watched(edge)
    edge.beside.append(app)
    server = uvicorn.Server(
        uvicorn.Config(
            app, http=early(app), ws="none", lifespan="off", access_log=False, log_config=None,
            server_header=False, proxy_headers=False, timeout_graceful_shutdown=1,
        )
    )  # fmt: skip
    task = asyncio.create_task(server._serve(sockets=[listener]))  # noqa: SLF001 - serve() would take our signals
    try:
        yield
    finally:
        server.should_exit = True
        await task


async def _serve(
    settings: config.Settings, listener: socket.socket, watched: socket.socket | None, *, background: bool
) -> None:
    with runtime.database(settings) as where:
        clock = SandboxClock() if settings.sandbox else None
        async with (
            runtime.opened(settings, where, now=clock.now if clock else utc_now) as opened,
            following(clock, opened.pool),
        ):
            signals = Signals(asyncio.Event(), asyncio.Event())
            context = replace(opened, happened=_teller(signals), decided=count_decision, texted=count_code)
            edge = make_app(context)
            standstill = Standstill(where, clock, edge.forget) if clock else None
            server = DrainingServer(
                uvicorn.Config(
                    _outside(edge, context, standstill),
                    http=early(edge),
                    ws="none",
                    lifespan="off",
                    access_log=False,
                    log_config=None,
                    server_header=False,
                    proxy_headers=False,
                    backlog=2048,
                    timeout_keep_alive=30,
                    timeout_graceful_shutdown=SLOWEST_SECONDS,
                ),
                edge,
                signals.stop,
            )
            parent = asyncio.create_task(_watch_parent(server))
            worker = _background(context, signals, standstill, jobs=background)
            if worker is not None:
                worker.add_done_callback(lambda ended: _watch_work(ended, server))
            _collect_less()
            async with _watched(edge, watched):
                await server.serve(sockets=[listener])
            signals.stop.set()
            parent.cancel()
            if worker is not None:
                with contextlib.suppress(Exception):  # told when it happened
                    await worker


def _outside(edge: Edge, context: Context, standstill: Standstill | None) -> ASGIApp:
    """The application; in the sandbox inside what only a sandbox needs."""
    if standstill is None:
        return edge
    return KnownHost(StandstillMiddleware(edge, context, standstill), edge, context.settings.hosts)


def _collect_less() -> None:
    """What is loaded by now stays: no later collection of garbage looks at it, and they come less often.

    Next to nothing here is a cycle. A request would spend a tenth of its time on looking for one.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(5_000, 20, 20)


def _background(
    context: Context, signals: Signals, standstill: Standstill | None, *, jobs: bool
) -> asyncio.Task[None] | None:
    """The jobs, or at least somebody who lets requests wait while the sandbox is copied."""
    if jobs:
        return asyncio.create_task(work(context, signals, standstill))
    return asyncio.create_task(standstill.keep(signals.stop)) if standstill else None


def _teller(signals: Signals) -> Callable[[Event], None]:
    """An event that is durable is counted, and wakes the one who sends it on."""

    def happened(event: Event) -> None:
        count(event)
        signals.news.set()

    return happened


def _watch_work(ended: asyncio.Task[None], server: uvicorn.Server) -> None:
    """A process whose background work has broken down must not look well: it ends, and its parent starts another."""
    if not ended.cancelled() and ended.exception() is not None:
        log.critical("background work broke down", exc_info=ended.exception())
        server.should_exit = True


async def _watch_parent(server: uvicorn.Server) -> None:
    parent = int(sys.argv[3])
    while os.getppid() == parent:  # noqa: ASYNC110 - a process's end sets no event here
        await asyncio.sleep(PARENT_CHECK_SECONDS)
    server.should_exit = True


def main() -> int:
    """`python -m cuota.run.process FD LISTEN PARENT [FD]`: settings come from the environment, as the parent read them.

    The second FD is the socket for metrics and health alone.
    """
    listener = socket.socket(fileno=int(sys.argv[1]))
    watched = socket.socket(fileno=int(sys.argv[4])) if sys.argv[4:] else None
    settings = config.load(listen=sys.argv[2])
    set_up_logging(settings.log_level)
    allow_open_files()
    # Ctrl-C in a terminal reaches the whole group; the parent decides, and sends SIGTERM.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(settings, listener, watched, background=True))
    return 0


if __name__ == "__main__":
    sys.exit(main())
