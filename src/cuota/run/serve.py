"""`cuota serve`: opens the port, migrates the database, and keeps the worker processes running."""

from __future__ import annotations

import contextlib
import errno
import json
import select
import signal
import socket
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import httpx
from prometheus_client import multiprocess

from cuota import config
from cuota.config.reading import is_loopback, url_host
from cuota.core.expected_failure import ExpectedFailure
from cuota.db.embedded.server import EmbeddedFailed, open_embedded
from cuota.flows.merchant.sandbox_account import give_test_accounts
from cuota.run import runtime
from cuota.run.metrics_folder import opened_metrics_folder
from cuota.run.signals import STOPS, StopSignal, handle_signals, run_until_signal
from cuota.run.stopping import STOP_SECONDS
from cuota.run.workers import ForkServer, WorkerProcess

# A start that takes longer than this is announced again and again. A fork server that forks no worker for so long is replaced.
READY_SECONDS = 30.0
# On an overloaded machine, workers that are alive may be slow. A worker that is not ready after this time hangs.
MOST_READY_SECONDS = 300.0
CHECK_SECONDS = 0.5
# A worker that ends sooner than this after its start is replaced after a pause: the next one may fail, too.
YOUNG_SECONDS = 1.0
# How long the end of a killed process may take.
KILL_SECONDS = 1.0
LEFT_BEHIND_SECONDS = 4.0
# The kernel's send buffer for each connection. The default would hold megabytes for each client that sends requests and
# never reads the responses.
MOST_UNSENT_BYTES = 64 * 1024


class CannotServe(ExpectedFailure):
    """The service cannot start or cannot continue. The text says what to do."""


@dataclass
class Serving:
    """A running service: its worker processes, and the sockets that they share."""

    settings: config.Settings
    listeners: list[socket.socket]
    fork_server: ForkServer
    workers: list[WorkerProcess] = field(default_factory=list)

    def start_worker(self) -> None:
        """Start one more worker process on the shared sockets."""
        self.workers.append(self.fork_server.fork())

    def stop(self) -> None:
        """Tell every worker process to end, and wait. Kill the processes that still run after that."""
        for listener in self.listeners:
            listener.close()
        for worker in self.workers:
            worker.stop()
        until = time.monotonic() + STOP_SECONDS
        if not all(worker.wait(until) for worker in self.workers):
            # A worker without a process id may still be forked, so the fork server is killed first.
            self.fork_server.kill()
            for worker in self.workers:
                worker.kill()
                worker.wait(time.monotonic() + KILL_SECONDS)
        for worker in self.workers:
            worker.close()


def _bind(listener: socket.socket, host: str, port: int) -> None:
    """Bind the socket. Wait for worker processes of a killed parent: they end by themselves within seconds."""
    until = time.monotonic() + LEFT_BEHIND_SECONDS
    while True:
        try:
            listener.bind((host, port))
        except OSError as problem:
            if problem.errno != errno.EADDRINUSE or time.monotonic() > until:
                raise
            time.sleep(0.1)
        else:
            return


def bind(host: str, port: int, *, option: str = "--port") -> socket.socket:
    """Return the listening socket. Raises CannotServe, which says what prevents it and which option helps."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if hasattr(socket, "TCP_NOTSENT_LOWAT"):  # connections inherit this option
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, MOST_UNSENT_BYTES)
    try:
        _bind(listener, host, port)
        listener.listen(2048)
    except OSError as problem:
        listener.close()
        # A name that is unknown, or an address of another machine, is not the port's fault.
        wrong = isinstance(problem, socket.gaierror) or problem.errno == errno.EADDRNOTAVAIL
        other = "--host" if wrong and option == "--port" else option
        raise CannotServe(
            f"Cannot listen on {host} port {port}: {problem.strerror}. Choose another {other}."
        ) from None
    listener.set_inheritable(True)
    return listener


def _watched(settings: config.Settings) -> socket.socket | None:
    if settings.metrics_listen is None:
        return None
    return bind(*settings.metrics_listen, option="CUOTA_METRICS_LISTEN")


def _shown(listener: socket.socket, host: str = "") -> str:
    """Return HOST:PORT as written in a URL."""
    bound, port, *_ = listener.getsockname()
    name = host or bound
    return f"{url_host(name)}:{port}"


def serve(
    host: str, port: int, workers: int, *, when_ready: Callable[[config.Settings], None] | None = None
) -> int:
    """Run until SIGTERM, Ctrl-C or the end of the terminal. When ready, print one line of JSON, or call `when_ready` instead."""
    started = time.monotonic()
    listener = bind(host, port)
    listen = f"http://{_shown(listener, host)}"
    settings = config.load(listen=listen)
    watched = _watched(settings)
    handle_signals()
    with contextlib.ExitStack() as stack:
        try:
            stack.enter_context(opened_metrics_folder())
            listeners = [listener] if watched is None else [listener, watched]
            # The fork server loads the code of the workers while this process prepares the database.
            fork_server = ForkServer(listen, listeners)
            stack.callback(fork_server.close)
            fork_server.start()
            where = stack.enter_context(runtime.database(settings))
            policy = run_until_signal(lambda: _prepared(settings, where, workers))
            serving = Serving(settings, listeners, fork_server)
            stack.callback(serving.stop)
            for _ in range(workers):
                serving.start_worker()
            _wait_ready(serving, listen)
            _warn(settings, host)
            if when_ready is None:
                ready = _ready(settings, listen, policy, watched)
                seconds = round(time.monotonic() - started, 2)
                print(json.dumps({**ready, "workers": workers, "seconds": seconds}), flush=True)
            else:
                when_ready(settings)
            _keep_running(serving)
        except StopSignal:
            pass
        finally:
            # A Ctrl-C while stopping changes nothing, because stopping takes a bounded time anyway.
            for number in STOPS:
                signal.signal(number, signal.SIG_IGN)
    return 0


def _warn(settings: config.Settings, host: str) -> None:
    """Warn about a sandbox that other machines can reach."""
    if settings.sandbox and not is_loopback(host):
        print(
            f"cuota: warning: this sandbox listens on {host}, so other machines may reach it. Their users can read the "
            "inbox with every one-time code (/sandbox/inbox). Webhooks to loopback addresses are "
            f"{'sent' if settings.loopback_webhooks else 'refused'} (CUOTA_LOOPBACK_WEBHOOKS). The sandbox accepts only the "
            f"host names {', '.join(sorted(settings.hosts))}; set CUOTA_PUBLIC_URL or CUOTA_HOSTS to add others.",
            file=sys.stderr,
            flush=True,
        )


def _ready(
    settings: config.Settings, listen: str, policy: str, watched: socket.socket | None
) -> dict[str, object]:
    ready: dict[str, object] = {
        "ready": True,
        "url": settings.public_url,
        "listen": listen,
        "environment": settings.environment,
        "policy": policy,
    }
    if watched is not None:
        ready["metrics"] = f"http://{_shown(watched)}/metrics"
    return ready


async def _prepared(settings: config.Settings, where: dict[str, Any], workers: int) -> str:
    """Migrate, and check the secret key, the rails and the policy.

    Checking here prints an error once, in one line, instead of once for each worker process. Returns the version of the
    policy in force.
    """
    await runtime.migrated(settings, where)
    await runtime.check_database(settings, where)
    async with runtime.opened(settings, where, pool_size=1) as context:
        runtime.warn(await runtime.too_many_sessions(context, workers), await runtime.served_beside(context))
        await runtime.note_served(context, decides=True)
        await give_test_accounts(context)
        return context.policy.version


def _wait_ready(serving: Serving, listen: str) -> None:
    """Wait until the service answers. Raises CannotServe as soon as a worker has ended, and after MOST_READY_SECONDS."""
    began = time.monotonic()
    until, announce_at = began + MOST_READY_SECONDS, began + READY_SECONDS
    # One client for all attempts: a new client reads the list of certificate authorities, which takes about 20 ms.
    with httpx.Client(base_url=listen, timeout=1, trust_env=False) as client:
        while (now := time.monotonic()) < until:
            for worker in serving.workers:
                if worker.ended():
                    raise CannotServe(_failure(serving, worker))
            if now >= announce_at:
                announce_at = now + READY_SECONDS
                _announce_slow_start(now - began, until - now)
            with contextlib.suppress(httpx.HTTPError):
                if client.get("/health/ready").status_code == httpx.codes.OK:
                    return
            time.sleep(0.05)
    raise CannotServe(
        f"The service was not ready within {MOST_READY_SECONDS:.0f} seconds, although no worker process has ended. Look for the "
        "reason in the lines above. If the machine is overloaded, start the service again with fewer --workers."
    )


def _announce_slow_start(seconds: float, left: float) -> None:
    print(
        f"cuota: warning: the worker processes run, but are not ready after {seconds:.0f} seconds. The machine may be overloaded. "
        f"Waiting for at most {left:.0f} more seconds.",
        file=sys.stderr,
        flush=True,
    )


def _failure(serving: Serving, worker: WorkerProcess) -> str:
    """Return why no worker could start."""
    if number := serving.fork_server.killed_by():
        return f"The process that starts the workers was killed (signal {number}). Start the service again."
    ending = serving.fork_server.ending_of(worker)
    return f"A worker process could not start{ending}. The reason is printed above."


def _keep_running(serving: Serving) -> None:
    """Replace worker processes and a fork server that died, and restart the embedded database if its supervisor was killed."""
    while True:
        select.select(serving.workers, [], [], CHECK_SECONDS)
        _replace_ended(serving)
        if serving.settings.database_url is None:
            # If the disk is full or read-only for a while, the service must not end.
            with contextlib.suppress(EmbeddedFailed, OSError):
                open_embedded(serving.settings.data_dir).close()


def _replace_ended(serving: Serving) -> None:
    """Replace the worker processes that have ended, and the fork server if it has ended or hangs."""
    now = time.monotonic()
    ended = [worker for worker in serving.workers if worker.ended()]
    if any(not worker.pid and now - worker.since > READY_SECONDS for worker in serving.workers):
        serving.fork_server.kill()
    if any(now - worker.since < YOUNG_SECONDS for worker in ended):
        time.sleep(CHECK_SECONDS)
    serving.fork_server.keep_running()
    for worker in ended:
        if worker.pid:
            print(
                f"cuota: worker process {worker.pid} ended{serving.fork_server.ending_of(worker)}; another one replaces it",
                file=sys.stderr,
                flush=True,
            )
            # Otherwise the gauges of the dead process would be counted forever.
            multiprocess.mark_process_dead(worker.pid)  # type: ignore[no-untyped-call]
        serving.workers.remove(worker)
        worker.close()
        serving.start_worker()
