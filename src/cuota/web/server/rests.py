"""Rests: for a short time the process does not read a connection on which it refused several requests in a row.

A client that ignores `Retry-After` would otherwise decide how much of the process's time goes into refusing. During a rest
its next request waits in the operating system, which holds the sender back when its buffer is full. A client that waits as
told never notices: the longest rest is over before `Retry-After`.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Protocol
from weakref import WeakKeyDictionary

from uvicorn.server import ServerState

from cuota.web.server.admission import RETRY_AFTER

TICK_SECONDS = 0.02
# No rest after the first refusal in a row, because a short burst is no flood. From then on each rest is twice as long as
# the one before.
WITHOUT_REST = 1
LONGEST_TICKS = 5
assert LONGEST_TICKS * TICK_SECONDS <= RETRY_AFTER / 10, (
    "a client that obeys Retry-After must not meet a rest, and one that shares a connection must not wait long"
)


def ticks_after(refused: int) -> int:
    """Return how many ticks a connection rests after this many refusals in a row."""
    if refused <= WITHOUT_REST:
        return 0
    return min(1 << min(refused - WITHOUT_REST - 1, 16), LONGEST_TICKS)


class Resting(Protocol):
    """A connection that can rest."""

    def read_on(self) -> None:
        """Read again, because the rest is over."""


class Rests:
    """Ends the rests of all connections of one server with one timer. `clock` returns seconds."""

    def __init__(self, loop: asyncio.AbstractEventLoop, clock: Callable[[], float]) -> None:
        self.clock = clock
        self._loop = loop
        # The connections whose rest ends at the next tick, the tick after it, and so on.
        self._ending: deque[list[Resting]] = deque()
        self._next_tick = 0.0

    def begin(self, connection: Resting, ticks: int) -> None:
        """Call the connection's `read_on` after this many ticks, or up to one tick earlier."""
        if not self._ending:
            self._next_tick = self.clock() + TICK_SECONDS
            self._loop.call_later(TICK_SECONDS, self._tick)
        while len(self._ending) < ticks:
            self._ending.append([])
        self._ending[ticks - 1].append(connection)

    def _tick(self) -> None:
        # After a busy turn of the event loop several ticks are due. They must not make the rests longer.
        now = self.clock()
        while self._ending and self._next_tick <= now:
            self._next_tick += TICK_SECONDS
            for connection in self._ending.popleft():
                connection.read_on()
        if self._ending:
            self._loop.call_later(TICK_SECONDS, self._tick)


_rests: WeakKeyDictionary[ServerState, Rests] = WeakKeyDictionary()


def rests_of(server: ServerState, loop: asyncio.AbstractEventLoop) -> Rests:
    """Return the rests of this server. The first call creates them."""
    rests = _rests.get(server)
    if rests is None:
        rests = _rests[server] = Rests(loop, loop.time)
    return rests
