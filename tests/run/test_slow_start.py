"""`cuota serve` waits for workers that are slow, and does not wait for a worker that has ended."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from cuota import config
from cuota.run import serve
from cuota.run.serve import CannotServe, Serving, _wait_ready
from cuota.run.workers import ForkServer, WorkerProcess


class Starting(BaseHTTPRequestHandler):
    """A service that is not ready at the first two requests."""

    asked = 0

    def do_GET(self) -> None:
        """Answer the readiness check."""
        assert self.path == "/health/ready"
        type(self).asked += 1
        self.send_response(503 if self.asked < 3 else 200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture
def address() -> Iterator[str]:
    """Yield the address of a service that is starting."""
    Starting.asked = 0
    with HTTPServer(("127.0.0.1", 0), Starting) as server:
        answering = threading.Thread(target=server.serve_forever, args=[0.01])
        answering.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        answering.join()


@pytest.fixture
def started(settings: config.Settings) -> Iterator[tuple[Serving, socket.socket]]:
    """Yield a service with one worker, and the worker's end of its socket. The worker has ended when this end is closed."""
    ours, theirs = socket.socketpair()
    with ours, theirs, closing(ForkServer("", [])) as fork_server:
        yield Serving(settings, [], fork_server, [WorkerProcess(ours)]), theirs


def test_a_start_on_an_overloaded_machine_is_announced_and_goes_on(
    started: tuple[Serving, socket.socket],
    address: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(serve, "READY_SECONDS", 0.0)
    _wait_ready(started[0], address)
    assert Starting.asked == 3
    assert "warning: the worker processes run, but are not ready after 0 seconds" in capsys.readouterr().err


def test_a_worker_that_ends_ends_the_start_at_once(
    started: tuple[Serving, socket.socket], address: str
) -> None:
    serving, worker = started
    worker.close()
    with pytest.raises(CannotServe, match="A worker process could not start"):
        _wait_ready(serving, address)
    assert Starting.asked == 0


def test_a_start_that_hangs_is_given_up(
    started: tuple[Serving, socket.socket], address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serve, "MOST_READY_SECONDS", 0.0)
    with pytest.raises(CannotServe, match="although no worker process has ended"):
        _wait_ready(started[0], address)
