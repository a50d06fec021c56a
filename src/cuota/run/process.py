"""One worker process: the web application and the background jobs on one event loop.

The fork server starts it with the listening socket. It ends cleanly on SIGTERM, and when `cuota serve` is gone.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import logging
import signal
import socket
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace

import uvicorn
import uvloop
from starlette.types import ASGIApp

from cuota import config
from cuota.core.order.event import Event
from cuota.db.pool import Pool
from cuota.flows.context import Context
from cuota.flows.database_clock import DatabaseClock
from cuota.flows.sandbox.clock import SandboxClock, following
from cuota.flows.sandbox.standstill import InFlightGate, Standstill
from cuota.run import runtime
from cuota.run.json_lines import set_up_logging
from cuota.run.last_connections import accept_waiting
from cuota.run.mover import DeskMover
from cuota.run.signals import ignore_terminal
from cuota.run.stopping import (
    CLOSE_SECONDS,
    LINGER_SECONDS,
    LOG_SECONDS,
    SLOWEST_SECONDS,
    TAKE_SECONDS,
    end_soon,
)
from cuota.web.app import make_app, make_watched
from cuota.web.server.deadlines import allow_open_files
from cuota.web.server.edge import Edge
from cuota.web.server.known_host import KnownHost
from cuota.web.server.metrics import (
    count,
    count_card_call,
    count_card_event,
    count_code,
    count_decision,
    count_review,
    show_reviews,
    show_sessions,
)
from cuota.web.server.protocol import BoundedProtocol
from cuota.web.server.standing import StandstillMiddleware
from cuota.web.traffic import counted
from cuota.work.loop import Signals, work

# Prometheus usually asks every 15 seconds.
SESSIONS_SECONDS = 5.0
log = logging.getLogger("cuota.run.process")


class DrainingServer(uvicorn.Server):
    """A uvicorn server that drains its connections when it stops.

    uvicorn itself closes idle connections at once, although a request may be arriving on one of them. This server first
    says `Connection: close` in every response, then accepts no new connections, then closes.
    """

    def __init__(self, settings: uvicorn.Config, edge: Edge, stopping: asyncio.Event) -> None:
        super().__init__(settings)
        self._edge = edge
        self._stopping = stopping

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Drain, then stop."""
        self._edge.drain()
        # The background jobs end first, so that the remaining requests have the process to themselves.
        self._stopping.set()
        await asyncio.sleep(TAKE_SECONDS)
        # A second descriptor of each socket keeps the connections that wait in it, while the event loop closes its own.
        kept = [listener.dup() for listener in sockets or []]
        for server in self.servers:
            server.close()
        for listener in sockets or []:
            listener.close()
        await asyncio.sleep(CLOSE_SECONDS)
        waiting = [connection for listener in kept for connection in accept_waiting(listener)]
        await asyncio.gather(*(self._serve_one(connection) for connection in waiting))
        await asyncio.sleep(LINGER_SECONDS)
        await super().shutdown(sockets=[])

    async def _serve_one(self, connection: socket.socket) -> None:
        """Serve a connection that the event loop has not accepted itself."""
        loop = asyncio.get_running_loop()
        with contextlib.suppress(OSError):
            await loop.connect_accepted_socket(
                lambda: BoundedProtocol(
                    config=self.config, server_state=self.server_state, app_state=self.lifespan.state
                ),
                connection,
            )


@contextlib.asynccontextmanager
async def _watched(edge: Edge, listener: socket.socket | None) -> AsyncIterator[None]:
    """Serve metrics and health on a separate port until the service has stopped. While it stops, the health check says so."""
    if listener is None:
        yield
        return
    app = make_watched(edge)
    edge.beside.append(app)
    server = uvicorn.Server(
        uvicorn.Config(
            app, http=BoundedProtocol, ws="none", lifespan="off", access_log=False, log_config=None,
            server_header=False, proxy_headers=False, timeout_graceful_shutdown=1,
        )
    )  # fmt: skip
    task = asyncio.create_task(server._serve(sockets=[listener]))  # noqa: SLF001 - serve() would take our signals
    try:
        yield
    finally:
        server.should_exit = True
        await task


@contextlib.asynccontextmanager
async def _requests_logged(edge: Edge, standstill: Standstill | None) -> AsyncIterator[None]:
    """Write the request log until the last request is answered."""
    requests = edge.service.requests
    if requests is None:
        yield
        return
    gate = standstill.jobs if standstill else InFlightGate(is_open=True)
    stop = asyncio.Event()
    task = asyncio.create_task(requests.run(stop, gate.inside))
    try:
        yield
    finally:
        stop.set()
        # While a sandbox is copied, the gate is closed, and the last calls are not written.
        await asyncio.wait({task}, timeout=LOG_SECONDS)
        task.cancel()


async def _serve(settings: config.Settings, listeners: Sequence[socket.socket], link: socket.socket) -> None:
    listener, watched = listeners[0], listeners[1] if listeners[1:] else None
    with runtime.database(settings) as where:
        clock = SandboxClock() if settings.sandbox else None
        ticking = clock or DatabaseClock()
        async with (
            runtime.opened(settings, where, clock=ticking) as opened,
            following(ticking, opened.pool),
        ):
            signals = Signals(asyncio.Event(), asyncio.Event())
            context = replace(
                opened,
                happened=_teller(signals),
                decided=count_decision,
                reviewed=count_review,
                reviews_wait=show_reviews,
                texted=count_code,
                card_event=count_card_event,
            )
            opened.rails.card.called = count_card_call
            mover = DeskMover(settings, where, signals.stop) if clock else None
            edge = make_app(context, mover)
            standstill = Standstill(where, clock, edge.forget) if clock else None
            server = DrainingServer(_configured(_outside(edge, context, standstill)), edge, signals.stop)
            # uvicorn's own handler would raise the signal again after the last response, and so kill the process.
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, _stop, server)
            parent = asyncio.create_task(_stop_without(link, server))
            sessions = asyncio.create_task(_show_sessions(opened.pool))
            worker = asyncio.create_task(work(context, signals, standstill, counted))
            worker.add_done_callback(lambda ended: _watch_work(ended, server))
            _collect_less()
            async with _watched(edge, watched), _requests_logged(edge, standstill):
                await server._serve(sockets=[listener])  # noqa: SLF001 - serve() would handle SIGTERM
            signals.stop.set()
            parent.cancel()
            sessions.cancel()
            await asyncio.gather(end_soon(worker), *([mover.close()] if mover else []))


def _configured(app: ASGIApp) -> uvicorn.Config:
    return uvicorn.Config(
        app,
        http=BoundedProtocol,
        ws="none",
        lifespan="off",
        access_log=False,
        log_config=None,
        server_header=False,
        proxy_headers=False,
        backlog=2048,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=SLOWEST_SECONDS,
    )


def _outside(edge: Edge, context: Context, standstill: Standstill | None) -> ASGIApp:
    """Return the application, in a sandbox with the wrappers that only a sandbox needs."""
    if standstill is None:
        return edge
    return KnownHost(StandstillMiddleware(edge, context, standstill), edge, context.settings.hosts)


def _collect_less() -> None:
    """Exempt everything that is loaded now from garbage collection, and collect less often.

    Almost nothing here forms reference cycles, and requests would spend a tenth of their time searching for cycles.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(5_000, 20, 20)


def _teller(signals: Signals) -> Callable[[Event], None]:
    """Return the function that is called with each durable event: it counts the event and wakes the job that sends it."""

    def happened(event: Event) -> None:
        count(event)
        signals.news.set()

    return happened


def _watch_work(ended: asyncio.Task[None], server: uvicorn.Server) -> None:
    """End the process if its background jobs have failed, so that it does not look healthy. `cuota serve` starts another one."""
    if not ended.cancelled() and ended.exception() is not None:
        log.critical("background work broke down", exc_info=ended.exception())
        server.should_exit = True


def _stop(server: uvicorn.Server) -> None:
    server.should_exit = True


async def _show_sessions(pool: Pool) -> None:
    """Show the database sessions in the metrics, again and again."""
    while True:
        show_sessions(pool)
        await asyncio.sleep(SESSIONS_SECONDS)


async def _stop_without(link: socket.socket, server: uvicorn.Server) -> None:
    """Stop when `cuota serve` shuts down its side of the socket, or is gone. `cuota serve` never sends anything on it."""
    link.setblocking(False)
    with contextlib.suppress(ConnectionError):
        await asyncio.get_running_loop().sock_recv(link, 1)
    _stop(server)


def serve_requests(listen: str, listeners: Sequence[socket.socket], link: socket.socket) -> int:
    """Run as a worker process, and return its exit code.

    `listen` is the address of the service. The first listener is for requests, and the second one, if there is one, for those to
    metrics and health only. `link` is the socket to `cuota serve`. Settings come from the environment, as `cuota serve` read them.
    """
    settings = config.load(listen=listen)
    set_up_logging(settings.log_level)
    allow_open_files()
    ignore_terminal()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(settings, listeners, link))
    return 0
