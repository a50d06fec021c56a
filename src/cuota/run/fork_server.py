"""`python -m cuota.run.fork_server LISTEN FD`: loads the service's code once, and forks a worker process for each request.

`cuota serve` starts it. LISTEN is the address of the service, and FD the socket to `cuota serve`. Each request is one byte with
descriptors: the worker's own socket to `cuota serve`, then the listening sockets.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import socket
import sys

from cuota.run.process import serve_requests
from cuota.run.signals import STOPS
from cuota.run.workers import ENDING, PID

# The worker's socket, and the listening sockets for requests, and for metrics and health only.
MOST_DESCRIPTORS = 3


def main() -> int:
    """Fork workers until `cuota serve` is gone and the last worker has ended. Each worker runs and ends in here as well."""
    listen = sys.argv[1]
    # A stop of the whole process group reaches this process, too. `cuota serve` decides what happens.
    for number in STOPS:
        signal.signal(number, signal.SIG_IGN)
    # `cuota serve` blocked these signals for the time of loading.
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPS)
    # A garbage collection would write to the pages that the workers share.
    gc.collect()
    gc.freeze()
    with socket.socket(fileno=int(sys.argv[2])) as link:
        signal.signal(signal.SIGCHLD, lambda *_: _tell_endings(link))
        descriptors = _fork_workers(link)
    if not descriptors:
        with contextlib.suppress(ChildProcessError):  # no worker is left
            while True:
                os.waitpid(-1, 0)
        return 0
    for number in (signal.SIGTERM, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    worker, *listeners = (socket.socket(fileno=each) for each in descriptors)
    try:
        worker.sendall(PID.pack(os.getpid()))
    except ConnectionError:
        return 0  # `cuota serve` is gone
    code = serve_requests(listen, listeners, worker)
    # A thread may still look up the address of a webhook's receiver. Python would wait for the answer.
    os._exit(code)


def _tell_endings(link: socket.socket) -> None:
    """Tell `cuota serve` how each worker ended that has ended."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return  # no worker is left
        if not pid:
            return
        with contextlib.suppress(OSError):  # `cuota serve` is gone
            link.send(ENDING.pack(pid, os.waitstatus_to_exitcode(status)), socket.MSG_DONTWAIT)


def _fork_workers(link: socket.socket) -> list[int]:
    """Fork a worker for each request. In a worker, return its descriptors; in the fork server, return none at the end."""
    while True:
        try:
            asked, descriptors, _, _ = socket.recv_fds(link, 1, MOST_DESCRIPTORS)
        except ConnectionError:
            return []  # `cuota serve` closed the socket, and had not read how a worker ended
        if not asked:
            return []
        try:
            if os.fork() == 0:
                return descriptors
        except OSError as problem:
            print(f"cuota: no worker process could be started: {problem.strerror}", file=sys.stderr)
        for each in descriptors:
            os.close(each)


if __name__ == "__main__":
    sys.exit(main())
