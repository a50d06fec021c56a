"""How long a connection may take to send and to read, and how many may be open: one clock for all of a process.

uvicorn has a limit for idle connections only; a request half sent it keeps for ever.
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
# Each is absolute: a byte a second does not extend it.
HEAD_SECONDS = 10
BODY_SECONDS = 15
# The peer must have read something of its answer.
READ_SECONDS = 15
# A stopping process waits so long for the rest of what was begun.
STOPPING_SECONDS = 4
# After a refusal, what is still being sent is read and dropped, so that no reset overtakes the refusal.
LINGER_SECONDS = 2
MOST_OPEN = 4_000
# Beyond them: so many at once are told so; further ones are cut.
MOST_TURNED_AWAY = 500
# So many are looked at in one turn of the loop: ending one in the middle of a body takes a tenth of a millisecond.
AT_ONCE = 25
# Open files that are kept for the database, the rails and the receivers of webhooks.
RESERVED_FILES = 512

HEAD_TICKS, BODY_TICKS, READ_TICKS, STOPPING_TICKS, LINGER_TICKS = (
    int(seconds / TICK_SECONDS)
    for seconds in (HEAD_SECONDS, BODY_SECONDS, READ_SECONDS, STOPPING_SECONDS, LINGER_SECONDS)
)
ENDED = Counter("cuota_connections_ended", "Connections that the service ended for what they did", ["reason"])


class Watched(Protocol):
    """A connection."""

    def judge(self) -> None:
        """Called every tick: end what is late."""


class Watch:
    """The clock of a server's connections.

    `ticks` goes on while somebody is connected. A tick that comes late counts once: while this process stood still
    it listened to nobody, and that was nobody's fault. From `last` on nothing is waited for any more.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, connections: set[Watched]) -> None:
        self.ticks = 0
        self.last: float = float("inf")
        files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        # "No limit" is a negative number, and a system that allows few files is to have some connections all the same.
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
        """Somebody has connected."""
        if not self._armed:
            self._armed = True
            self._loop.call_later(TICK_SECONDS, self._tick)

    def stop(self) -> None:
        """The process stops; calling it again extends nothing."""
        self.last = min(self.last, self.ticks + STOPPING_TICKS)

    def late(self, since: int, ticks: int) -> bool:
        """Whether more than `ticks` whole ones are over since then. Never early, and at most one tick late."""
        return self.ticks - since > ticks or self.ticks > self.last

    def _tick(self) -> None:
        self.ticks += 1
        self._armed = False
        if self._connections or self.turned_away:
            self.begin()
        self._judge(iter((*self._connections, *self.turned_away)))

    def _judge(self, connections: Iterator[Watched]) -> None:
        """Some of them; the others once the loop has gone round, so that nobody waits while thousands are ended."""
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
    """Let this process open as many files as the system lets it: many begin with 1,024."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST_OPEN + MOST_TURNED_AWAY + RESERVED_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))
