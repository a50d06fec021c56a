"""Accepts the connections that wait in a listening socket when a worker stops.

The kernel completes connections before a process accepts them. When the last process closes the listening socket, the
kernel resets the connections that nobody has accepted. A client may already have sent a request on such a connection,
which is then lost.
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
        # This is usually BlockingIOError, which means that no more connections wait. After any other error, none can be accepted.
        pass
    finally:
        listener.close()
    return waiting
