"""Takes the connections that wait in a listening socket when a worker stops.

The kernel completes connections before a process accepts them. When the last process closes the listening socket, the kernel
resets those that nobody accepted, and their clients lose a request that they may have sent already.
"""

from __future__ import annotations

import socket


def accept_waiting(listener: socket.socket) -> list[socket.socket]:
    """Accept every connection that waits, close the listening socket at once, and return the connections."""
    listener.setblocking(False)
    waiting = []
    try:
        while True:
            connection, _ = listener.accept()
            connection.setblocking(False)
            waiting.append(connection)
    except OSError:
        # Usually BlockingIOError: nothing waits any more. Otherwise there is nothing that could be accepted.
        pass
    finally:
        listener.close()
    return waiting
