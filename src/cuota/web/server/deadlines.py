"""Timeouts of connections, and how many connections may be open. One clock serves all connections of a process.

uvicorn has a timeout for idle connections only. It would keep a half-sent request forever.
"""

from __future__ import annotations

import asyncio
import resource
from collections.abc import Iterator
from itertools import islice
from typing import Protocol
from weakref import WeakKeyDictionary

from prometheus_client import Counter
from uvicorn.server import ServerState

TICK_SECONDS = 0.5
# Time for the head of a request and for its body. A client that sends one byte per second does not extend them.
HEAD_SECONDS = 10
BODY_SECONDS = 15
# Within this time the client must read some part of its answer.
READ_SECONDS = 15
# A stopping process waits this long for the rest of requests that have begun to arrive.
STOPPING_SECONDS = 4
# After a refusal the server reads and drops what the client still sends. Closing at once would send a TCP reset, which
# could reach the client before the refusal.
LINGER_SECONDS = 2
assert TICK_SECONDS < LINGER_SECONDS < STOPPING_SECONDS < HEAD_SECONDS <= BODY_SECONDS, (
    "a timeout must be longer than a tick; a stopping process must end a refusal, and must not wait out a slow client"
)
MOST_OPEN = 4_000
# This many connections above MOST_OPEN are answered 503; any more are cut.
MOST_TURNED_AWAY = 500
# This many connections are checked in one turn of the event loop: ending one that sends a body takes 0.1 ms.
AT_ONCE = 25
# Open files that are left for the database, the rails and the receivers of webhooks.
RESERVED_FILES = 512

HEAD_TICKS, BODY_TICKS, READ_TICKS, STOPPING_TICKS, LINGER_TICKS = (
    int(seconds / TICK_SECONDS)
    for seconds in (HEAD_SECONDS, BODY_SECONDS, READ_SECONDS, STOPPING_SECONDS, LINGER_SECONDS)
)
ENDED = Counter("cuota_connections_ended", "Connections that the service ended for what they did", ["reason"])


class Watched(Protocol):
    """A connection."""

    def judge(self) -> None:
        """Called at every tick: end the connection if it is late."""


class Watch:
    """The clock of a server's connections.

    `ticks` counts up while there is a connection. A late tick counts once: while the process was paused it read nothing,
    and no client is to be timed out for that. After the tick `last` the process waits for no request any more.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, connections: set[Watched]) -> None:
        self.ticks = 0
        self.last: float = float("inf")
        files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        # "No limit" is a negative number. A system that allows few open files must still allow some connections.
        self.most_open = (
            MOST_OPEN
            if files == resource.RLIM_INFINITY
            else min(MOST_OPEN, max(files - RESERVED_FILES, files // 2))
        )
        self.turned_away: set[Watched] = set()
        self._loop = loop
        self._connections = connections
        self._armed = False

    def begin(self) -> None:
        """A connection was made: start the clock if it stands."""
        if not self._armed:
            self._armed = True
            self._loop.call_later(TICK_SECONDS, self._tick)

    def stop(self) -> None:
        """The process stops. A second call does not extend the time."""
        self.last = min(self.last, self.ticks + STOPPING_TICKS)

    def late(self, since: int, ticks: int) -> bool:
        """Whether more than `ticks` whole ticks have passed since `since`. Never early, and at most one tick late."""
        return self.ticks - since > ticks or self.ticks > self.last

    def _tick(self) -> None:
        self.ticks += 1
        self._armed = False
        if self._connections or self.turned_away:
            self.begin()
        self._judge(iter((*self._connections, *self.turned_away)))

    def _judge(self, connections: Iterator[Watched]) -> None:
        """Check some connections, and the rest in later turns of the loop, so that no request waits for thousands of them."""
        some = tuple(islice(connections, AT_ONCE))
        for connection in some:
            connection.judge()
        if len(some) == AT_ONCE:
            self._loop.call_soon(self._judge, connections)


_watches: WeakKeyDictionary[ServerState, Watch] = WeakKeyDictionary()


def watch_of(server: ServerState, loop: asyncio.AbstractEventLoop) -> Watch:
    """The one watch of a server."""
    watch = _watches.get(server)
    if watch is None:
        watch = _watches[server] = Watch(loop, server.connections)  # type: ignore[arg-type]
    return watch


def allow_open_files() -> None:
    """Raise the limit of open files as far as the system allows: on many systems it starts at 1,024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_OPEN + MOST_TURNED_AWAY + RESERVED_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))
