"""Free ports of loopback, for servers that must know their port before they start."""

from __future__ import annotations

import socket


def free_port() -> int:
    """Return a port that the system gives to no other program until this process ends.

    A server that sets SO_REUSEADDR, as nearly all do, can listen on it. Until it does, connections are refused.
    """
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind(("127.0.0.1", 0))
    port = int(held.getsockname()[1])
    held.detach()  # stays open, so the port stays taken
    return port
