"""Ends the wait for a node of a Citus cluster that hangs, so that its merchants get 503 soon and the others keep their sessions.

A new connection to a node that does not answer times out (citus.node_connection_timeout). But the coordinator also keeps connections
to the nodes. A statement on such a connection waits without a limit: statement_timeout does not end it, because Citus then waits for
the node to confirm that the statement is canceled.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import re
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from cuota.core.refusal import Refused
from cuota.db.citus import MERCHANT, ON_NODES
from cuota.db.hosts import NodeLost
from cuota.db.pool import BUSY, GONE

# A statement that takes longer than this lets the guard ask which nodes are silent.
SLOW_SECONDS = 0.3
# Between two questions, at least. While a node is silent, the guard asks again and again.
EVERY_SECONDS = 1.0
# The tables and functions of merchants' rows. A statement without them needs no merchant's node, even if it names merchants.
_OF_MERCHANTS = re.compile(
    rf"(?<!')\b({'|'.join(name for name, place in ON_NODES.items() if place == MERCHANT)})\b"
)
log = logging.getLogger("cuota.cluster")


class Guarded(Protocol):
    """A session whose statements are guarded. `node` is the number of its own node."""

    node: int

    def terminate(self) -> None:
        """Close the session without waiting for the server."""
        ...


@dataclass(slots=True, eq=False)
class _Running:
    """A statement that runs, its text and its values. `ended` means that the guard has closed its session."""

    session: Guarded
    sql: str
    values: Sequence[object]
    since: float
    ended: bool = False


class NodeGuard:
    """Guards the sessions of one process's pool."""

    def __init__(self) -> None:
        self._ask: Callable[[], Awaitable[frozenset[int]]] | None = None
        self._read_places: Callable[[], Awaitable[dict[UUID, int]]]
        self._renew: Callable[[], Awaitable[None]]
        self._running: set[_Running] = set()
        self._asking: asyncio.Task[None] | None = None
        self._silent: frozenset[int] = frozenset()
        # Where the rows of each merchant are. It is known while a node is silent.
        self._places: dict[UUID, int] = {}
        # The number of the worker at which the sessions for orders are, if there are any.
        self.entry_node: int | None = None
        # Statements that began later do not use an old connection to a silent node.
        self._renewed_at = 0.0

    def begin(
        self,
        ask: Callable[[], Awaitable[frozenset[int]]],
        read_places: Callable[[], Awaitable[dict[UUID, int]]],
        renew: Callable[[], Awaitable[None]],
    ) -> None:
        """Begin to guard.

        `ask` returns the numbers of the nodes that cannot be reached, `read_places` the number of each merchant's node. `renew`
        replaces all idle sessions, because each may have a connection to a silent node.
        """
        self._ask, self._read_places, self._renew = ask, read_places, renew

    def end(self) -> None:
        """Stop guarding, because the pool closes."""
        self._ask = None
        if self._asking is not None:
            self._asking.cancel()

    def knows_silent(self) -> bool:
        """Return whether a node is silent now."""
        return bool(self._silent)

    def entry_is_silent(self) -> bool:
        """Return whether the worker with the sessions for orders is silent now."""
        return self.entry_node in self._silent

    @contextlib.contextmanager
    def over(self, session: Guarded, sql: str, values: Sequence[object]) -> Iterator[None]:
        """Guard the statement that the block runs. Raises NodeLost at once if it is for a merchant on a silent node."""
        if self._silent and self._is_for_silent(sql, values):
            raise NodeLost("the merchant's node of the database cluster does not answer")
        running = _Running(session, sql, values, time.monotonic())
        self._running.add(running)
        timer = asyncio.get_running_loop().call_later(SLOW_SECONDS, self._ask_soon)
        try:
            yield
        except GONE as problem:
            if running.ended:
                raise NodeLost("a node of the database cluster does not answer") from problem
            raise
        finally:
            timer.cancel()
            self._running.discard(running)

    def _ask_soon(self) -> None:
        if self._asking is None and self._ask is not None:
            self._asking = asyncio.create_task(self._keep_asking(self._ask))

    async def _keep_asking(self, ask: Callable[[], Awaitable[frozenset[int]]]) -> None:
        """Ask until all nodes answer, and every statement that was slow has ended."""
        try:
            slow = True
            while self._silent or slow:
                began = time.monotonic()
                await self._take(await ask())
                await asyncio.sleep(EVERY_SECONDS)
                slow = any(each.since <= began for each in self._running)
        except (Refused, TimeoutError, *GONE, *BUSY) as problem:
            log.warning("nodes not asked", extra={"facts": {"problem": type(problem).__name__}})
        except Exception:
            log.exception("nodes not asked")
        finally:
            # The next slow statement lets us ask again.
            self._silent, self._asking = frozenset(), None

    async def _take(self, silent: frozenset[int]) -> None:
        """Take the answer. If a node has become silent, end what waits for it."""
        fresh = bool(silent - self._silent)
        if fresh:
            self._places = await self._read_places()
        self._silent = silent
        if fresh:
            await self._renew()
            self._renewed_at = time.monotonic()
            self._end_waiting()
            # Some statements may have begun only a moment ago.
            asyncio.get_running_loop().call_later(SLOW_SECONDS, self._end_waiting)

    def _end_waiting(self) -> None:
        """Close the sessions that wait for a silent node, perhaps on an old connection."""
        until = min(time.monotonic() - SLOW_SECONDS, self._renewed_at)
        for each in self._running:
            if each.since <= until and not each.ended and self._may_wait(each):
                each.ended = True
                each.session.terminate()

    def _is_for_silent(self, sql: str, values: Sequence[object]) -> bool:
        return _of_merchants(sql) and any(self._places.get(each) in self._silent for each in _ids(values))

    def _may_wait(self, running: _Running) -> bool:
        """Return whether the statement may wait for a silent node. Not if it is only for merchants on other nodes."""
        merchants = {self._places[each] for each in _ids(running.values) if each in self._places}
        if merchants and _of_merchants(running.sql):
            return not self._silent.isdisjoint({*merchants, running.session.node})
        return bool(self._silent)


@functools.lru_cache(maxsize=1024)
def _of_merchants(sql: str) -> bool:
    return _OF_MERCHANTS.search(sql) is not None


def _ids(values: Sequence[object]) -> Iterator[UUID]:
    """Yield the ids among the values of a statement, also those in lists."""
    for value in values:
        if isinstance(value, UUID):
            yield value
        elif isinstance(value, list | tuple):
            yield from (each for each in value if isinstance(each, UUID))
