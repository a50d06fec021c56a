"""`python -m cuota.run.fork_server LISTEN FD FD [FD]`: loads the service's code once, and forks a worker process for each request.

`cuota serve` starts it. LISTEN is the address of the service. The first FD is the socket to `cuota serve`, the second one listens
for requests, and the third one, if there is one, for those to metrics and health only.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import socket
import sys
from collections.abc import Sequence

from cuota.run.process import serve_requests
from cuota.run.workers import PID


def main() -> int:
    """Fork workers until `cuota serve` is gone and the last worker has ended. Each worker returns from here as well."""
    listen, *descriptors = sys.argv[1:]
    link, *listeners = (socket.socket(fileno=int(each)) for each in descriptors)
    # A stop of the whole process group reaches this process, too. `cuota serve` decides what happens.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    # The kernel removes ended workers.
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    # A garbage collection would write to the pages that the workers share.
    gc.collect()
    gc.freeze()
    worker = _fork_workers(link)
    if worker is None:
        _wait_for_workers(listeners)
        return 0
    link.close()
    for number in (signal.SIGTERM, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    try:
        worker.sendall(PID.pack(os.getpid()))
    except ConnectionError:
        return 0  # `cuota serve` has stopped meanwhile
    return serve_requests(listen, listeners, worker)


def _fork_workers(link: socket.socket) -> socket.socket | None:
    """Fork a worker for each socket that arrives. In a worker, return its socket, and None in the fork server."""
    while True:
        asked, descriptors, _, _ = socket.recv_fds(link, 1, 1)
        if not asked:
            return None
        with socket.socket(fileno=descriptors[0]) as worker:
            try:
                if os.fork() == 0:
                    return worker.dup()
            except OSError as problem:
                print(f"cuota: no worker process could be started: {problem.strerror}", file=sys.stderr)


def _wait_for_workers(listeners: Sequence[socket.socket]) -> None:
    """Return when the last worker has ended. Workers that stop close their listening sockets, so none may stay open here."""
    for listener in listeners:
        listener.close()
    with contextlib.suppress(ChildProcessError):  # no worker is left
        os.waitpid(-1, 0)


if __name__ == "__main__":
    sys.exit(main())
