"""The worker processes of `cuota serve`, as `cuota serve` sees them.

One process, the fork server (`fork_server.py`), loads the service's code once and forks every worker. A new worker is then ready
within a tenth of a second instead of a second, and the workers share the memory of the loaded code. `cuota serve` and each worker
share a pair of sockets. When one of the two processes ends, its socket closes, and the other process can see that.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Sequence

from cuota.run.signals import signals_held

PID = struct.Struct("!i")
# The process id and the exit code of a worker that has ended.
ENDING = struct.Struct("!ii")
# The fork server says how a worker ended just after the worker's socket has closed.
ENDING_SECONDS = 0.5
# The fork server is killed if it has not ended this long after its last worker.
LAST_SECONDS = 0.5


class WorkerProcess:
    """A worker process. `pid` is 0 until it has started. `since` is when it was asked for, or has started (monotonic clock)."""

    def __init__(self, link: socket.socket) -> None:
        self.pid = 0
        self.since = time.monotonic()
        self._link = link
        self._ended = False
        link.setblocking(False)

    def fileno(self) -> int:
        """Return the descriptor that can be read when the process has started, and when it has ended."""
        return self._link.fileno()

    def ended(self) -> bool:
        """Return whether the process has ended, or could not start."""
        while not self._ended:
            try:
                received = self._link.recv(PID.size)
            except BlockingIOError:
                break
            except ConnectionError:
                received = b""
            if received:
                (self.pid,) = PID.unpack(received)
                self.since = time.monotonic()
            else:
                self._ended = True
        return self._ended

    def stop(self) -> None:
        """Tell the process to finish its requests and end, even if it has not started yet."""
        with contextlib.suppress(OSError):
            self._link.shutdown(socket.SHUT_WR)
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """Kill the process, unless it has ended or has not started yet."""
        self._signal(signal.SIGKILL)

    def _signal(self, number: signal.Signals) -> None:
        if not self.ended() and self.pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def wait(self, until: float) -> bool:
        """Wait for the end of the process, at most until this time of the monotonic clock. Return whether it has ended."""
        while not self.ended():
            left = until - time.monotonic()
            if left <= 0:
                return False
            select.select([self], [], [], left)
        return True

    def close(self) -> None:
        """Forget the process. If it still runs, it stops."""
        self._link.close()
        if self._ended and self.pid:
            # In a container, `cuota serve` may be process 1, which inherits the workers of a killed fork server.
            with contextlib.suppress(ChildProcessError):
                os.waitpid(self.pid, 0)


class ForkServer:
    """The process that forks the workers of one `cuota serve`. The workers go on without it.

    It gets the listening sockets only for the moment of a fork. Otherwise a fork server that is loading or hangs while the service
    stops would keep the sockets open, and connections would wait in them in vain.
    """

    def __init__(self, listen: str, listeners: Sequence[socket.socket]) -> None:
        self._listen = listen
        self._listeners = listeners
        self._link = socket.socket()
        self._process: subprocess.Popen[bytes] | None = None
        self._endings: dict[int, int] = {}
        self._since = 0.0

    def start(self) -> None:
        """Start the process. Call `close` in any case, even if this raises an exception."""
        self._link, theirs = socket.socketpair()
        self._since = time.monotonic()
        command = [sys.executable, "-m", "cuota.run.fork_server", self._listen, str(theirs.fileno())]
        # Worker processes never migrate, so they do not get the owner's password.
        environment = {
            name: value for name, value in os.environ.items() if name != "CUOTA_DATABASE_OWNER_URL"
        }
        with theirs, signals_held():
            self._process = subprocess.Popen(command, env=environment, pass_fds=[theirs.fileno()])  # noqa: S603

    def keep_running(self) -> None:
        """Start another fork server if this one was killed."""
        if self._process is None or self._process.poll() is not None:
            self._link.close()
            self.start()

    def killed_by(self) -> int:
        """Return the signal that killed the fork server, or 0."""
        code = None if self._process is None else self._process.poll()
        return max(0, -(code or 0))

    def kill(self) -> None:
        """Kill the fork server. Workers that it has not forked yet count as ended."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def fork(self) -> WorkerProcess:
        """Start one more worker process."""
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                self._send(theirs)
            except ConnectionError:
                self.kill()
                self.keep_running()
                self._send(theirs)
        return WorkerProcess(ours)

    def ending_of(self, worker: WorkerProcess) -> str:
        """Return how a worker ended, such as ` (signal 9, SIGKILL)`, or nothing if the fork server does not say so in a moment."""
        if worker.since < self._since:
            return ""  # an earlier fork server has forked it
        until = time.monotonic() + ENDING_SECONDS
        while worker.pid and worker.pid not in self._endings:
            left = max(0.0, until - time.monotonic())
            if not select.select([self._link], [], [], left)[0]:
                return ""
            try:
                received = self._link.recv(ENDING.size, socket.MSG_WAITALL)
            except ConnectionError:
                return ""
            if len(received) < ENDING.size:
                return ""
            pid, code = ENDING.unpack(received)
            self._endings[pid] = code
        return shown(self._endings.pop(worker.pid, None))

    def _send(self, theirs: socket.socket) -> None:
        descriptors = [theirs.fileno(), *(each.fileno() for each in self._listeners)]
        socket.send_fds(self._link, [b"+"], descriptors)

    def close(self) -> None:
        """End the fork server, after the last worker."""
        self._link.close()
        try:
            if self._process is not None:
                self._process.wait(LAST_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()


def shown(code: int | None) -> str:
    """Return an exit code in words. A negative one is the signal that killed the process."""
    if code is None:
        return ""
    if code >= 0:
        return f" (exit code {code})"
    with contextlib.suppress(ValueError):
        return f" (signal {-code}, {signal.Signals(-code).name})"
    return f" (signal {-code})"
