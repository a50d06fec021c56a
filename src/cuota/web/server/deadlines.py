"""Timeouts for connections, and a limit on open connections. One timer serves all connections of a process.

uvicorn has a timeout for idle connections only. It would keep a connection with a half-sent request open forever.
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
# A request has this much time for its head and for its body. A client that sends one byte per second does not get more
# time.
HEAD_SECONDS = 10
BODY_SECONDS = 15
# A body with files has this much time, because a phone may send it over a slow network. Only some routes accept files.
UPLOAD_SECONDS = 120
# The client must read some part of its answer within this time.
READ_SECONDS = 15
# A stopping process waits this long for requests that are still arriving.
STOPPING_SECONDS = 4
# After a refusal the server reads and discards what the client still sends. If it closed the connection at once, the
# system would send a TCP reset, which could reach the client before the refusal.
LINGER_SECONDS = 2
assert TICK_SECONDS < LINGER_SECONDS < STOPPING_SECONDS < HEAD_SECONDS <= BODY_SECONDS, (
    "a timeout must be longer than a tick; a stopping process must have time to send a refusal, and must not wait as "
    "long for a slow client as a running one"
)
MOST_OPEN = 4_000
# This many connections above MOST_OPEN are answered 503. Any further connection is closed without an answer.
MOST_TURNED_AWAY = 500
# This many connections are checked in one turn of the event loop. Ending a connection that sends a body takes 0.1 ms.
AT_ONCE = 25
# Open files reserved for connections to the database, to the payment rails and to webhook endpoints.
RESERVED_FILES = 512

HEAD_TICKS, BODY_TICKS, UPLOAD_TICKS, READ_TICKS, STOPPING_TICKS, LINGER_TICKS = (
    int(seconds / TICK_SECONDS)
    for seconds in (
        HEAD_SECONDS,
        BODY_SECONDS,
        UPLOAD_SECONDS,
        READ_SECONDS,
        STOPPING_SECONDS,
        LINGER_SECONDS,
    )
)
ENDED = Counter("cuota_connections_ended", "Connections that the service ended for what they did", ["reason"])


class Watched(Protocol):
    """A connection that has timeouts."""

    def judge(self) -> None:
        """End the connection if it exceeded a timeout. The clock calls this at every tick."""


class Watch:
    """The clock that times the connections of one server.

    `ticks` counts up while at least one connection is open. A late tick counts only once: a paused process reads
    nothing, and the pause must not make a client time out. After the tick `last`, a stopping process no longer waits for
    requests.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, connections: set[Watched]) -> None:
        self.ticks = 0
        self.last: float = float("inf")
        files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        # The system reports "no limit" as a negative number. If few open files are allowed, half of them are used.
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
        """Start the clock, if it is not running, for a new connection."""
        if not self._armed:
            self._armed = True
            self._loop.call_later(TICK_SECONDS, self._tick)

    def stop(self) -> None:
        """Set the last tick at which a stopping process waits for requests. A second call does not move that tick."""
        self.last = min(self.last, self.ticks + STOPPING_TICKS)

    def late(self, since: int, ticks: int) -> bool:
        """Return whether a wait that began at the tick `since` is over.

        It is over after more than `ticks` ticks, or when the stopping process no longer waits. The result is never true
        too early, and is true at most one tick too late.
        """
        return self.ticks - since > ticks or self.ticks > self.last

    def _tick(self) -> None:
        self.ticks += 1
        self._armed = False
        if self._connections or self.turned_away:
            self.begin()
        self._judge(iter((*self._connections, *self.turned_away)))

    def _judge(self, connections: Iterator[Watched]) -> None:
        """Check AT_ONCE connections now, and the others in later turns of the event loop.

        Otherwise a request would wait until thousands of connections were checked.
        """
        some = tuple(islice(connections, AT_ONCE))
        for connection in some:
            connection.judge()
        if len(some) == AT_ONCE:
            self._loop.call_soon(self._judge, connections)


_watches: WeakKeyDictionary[ServerState, Watch] = WeakKeyDictionary()


def watch_of(server: ServerState, loop: asyncio.AbstractEventLoop) -> Watch:
    """Return the clock of this server. The first call creates it."""
    watch = _watches.get(server)
    if watch is None:
        watch = _watches[server] = Watch(loop, server.connections)  # type: ignore[arg-type]
    return watch


def allow_open_files() -> None:
    """Raise the limit on open files as far as needed and allowed. Many systems start with 1,024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_OPEN + MOST_TURNED_AWAY + RESERVED_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))
