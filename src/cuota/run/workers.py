"""The worker processes of `cuota serve`, as `cuota serve` sees them.

One process, the fork server (`fork_server.py`), loads the service's code once and forks every worker. A new worker is then ready
within a tenth of a second instead of a second, and the workers share the memory of the loaded code. `cuota serve` and each worker
share a pair of sockets: when one of the two ends, its socket closes, and the other one learns that.
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

PID = struct.Struct("!i")
# The end of the fork server, after the last worker has ended.
FORK_SERVER_SECONDS = 5.0


class WorkerProcess:
    """A worker process. `pid` is 0 until the process has started. `asked` is when it was asked for, by the monotonic clock."""

    def __init__(self, link: socket.socket) -> None:
        self.pid = 0
        self.asked = time.monotonic()
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
            else:
                self._ended = True
        return self._ended

    def signal(self, number: signal.Signals) -> None:
        """Send a signal, unless the process has ended or has not started yet."""
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


class ForkServer:
    """The process that forks the workers of one `cuota serve`. The workers go on without it."""

    def __init__(self, listen: str, sockets: Sequence[socket.socket]) -> None:
        self._listen = listen
        self._sockets = sockets
        self._start()

    def _start(self) -> None:
        self._link, theirs = socket.socketpair()
        with theirs:
            descriptors = [theirs.fileno(), *(each.fileno() for each in self._sockets)]
            command = [sys.executable, "-m", "cuota.run.fork_server", self._listen, *map(str, descriptors)]
            # Worker processes never migrate, so they do not get the owner's password.
            environment = {
                name: value for name, value in os.environ.items() if name != "CUOTA_DATABASE_OWNER_URL"
            }
            self._process = subprocess.Popen(command, env=environment, pass_fds=descriptors)  # noqa: S603

    def keep_running(self) -> None:
        """Start another fork server if this one was killed."""
        if self._process.poll() is not None:
            self._link.close()
            self._start()

    def fork(self) -> WorkerProcess:
        """Start one more worker process."""
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                self._send(theirs)
            except ConnectionError:
                self._process.wait()
                self.keep_running()
                self._send(theirs)
        return WorkerProcess(ours)

    def _send(self, theirs: socket.socket) -> None:
        socket.send_fds(self._link, [b"+"], [theirs.fileno()])

    def retire(self) -> None:
        """Fork no more: the fork server closes its listening sockets, and ends after the last worker."""
        self._link.close()

    def close(self) -> None:
        """Retire the fork server, and wait for its end."""
        self.retire()
        try:
            self._process.wait(FORK_SERVER_SECONDS)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
