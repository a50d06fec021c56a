"""A session on a Citus cluster, which distinguishes the loss of another node from the loss of the session."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import asyncpg

from cuota.db.cluster.guard import NodeGuard
from cuota.db.hosts import Honest, NodeLost

# The SQLSTATEs with which this session's node reports that another node is gone: class 08, and the codes of a node that
# stops or starts. If a commit needs a lost connection, Citus has no code, only these texts.
_CLASS, _STATES = "08", ("57P01", "57P02", "57P03")
_WORDS = (
    "marked as essential",
    "connection not open",
    "could not establish any connections",
    "server closed the connection",
    "could not receive data from server",
    "could not send data to server",
    "SSL SYSCALL error",
)
# Citus's own words for the death of this session's node, in a backend that lives a moment longer.
_DYING = "postmaster was shut down"
# Citus warns with these words that a new connection to a node timed out. Nothing was sent to that node.
_SILENT = "could not establish connection after"


def is_node_lost(problem: asyncpg.PostgresError) -> bool:
    """Return whether this server error is about another node.

    When the session itself is lost, the error is FATAL or there is no answer.
    """
    if getattr(problem, "severity", None) != "ERROR":
        return False
    state = problem.sqlstate or ""
    return state.startswith(_CLASS) or state in _STATES or any(words in str(problem) for words in _WORDS)


class ClusterSession(Honest):
    """A connection that raises NodeLost if another node cannot be reached, and ConnectionError if its own node dies."""

    # Who ends the wait for a node that hangs, and the number of this session's own node.
    guard: NodeGuard | None = None
    node = 0

    async def _execute(self, query: str, args: Sequence[object], *arguments: Any, **more: Any) -> Any:
        with self._guarded(query, args):
            return await super()._execute(query, args, *arguments, **more)

    async def _do_execute(
        self, query: str, executor: Callable[..., Awaitable[Any]], *arguments: Any, **more: Any
    ) -> Any:
        try:
            return await super()._do_execute(query, executor, *arguments, **more)
        except asyncpg.PostgresError as problem:
            self._raise_lost(problem)
            raise

    async def execute(self, query: str, *arguments: Any, timeout: float | None = None) -> str:  # noqa: ASYNC109
        """Do the same as asyncpg's method. The commit of a transaction also calls this method."""
        try:
            # With arguments, asyncpg calls _execute.
            with contextlib.nullcontext() if arguments else self._guarded(query, ()):
                tag: str = await super().execute(query, *arguments, timeout=timeout)
        except asyncpg.PostgresError as problem:
            self._raise_lost(problem)
            raise
        return tag

    def _guarded(self, sql: str, values: Sequence[object]) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext() if self.guard is None else self.guard.over(self, sql, values)

    def _process_log_message(self, fields: dict[str, str], last_query: str) -> None:
        if not fields.get("M", "").startswith(_SILENT):
            super()._process_log_message(fields, last_query)

    def _raise_lost(self, problem: asyncpg.PostgresError) -> None:
        """Raise an error about a lost node if `problem` is one."""
        if _DYING in str(problem):
            self.terminate()
            raise ConnectionError("the node of this database session is gone") from problem
        if is_node_lost(problem):
            raise NodeLost("a node of the database cluster cannot be reached") from problem
