"""Failpoints of the harness: at a named step of the service's work, once, do something bad.

The file STRIKE_FILE names one moment as JSON: `when` (before, after), `kind` (sql, call, answer), `what` (a piece of a
statement, of a function's name, or of `METHOD /path`) and `action`. The first process that gets there takes the file
away and acts, as nobody else could at that very step:

- kill: SIGKILL to itself
- raise: an exception that nobody expects
- hang: nothing happens for `seconds`
- cut: the connection at hand is lost: the database's, the caller's, or the one to a rail. After a step, what it
  answered is lost with it.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import os
import signal
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

FILE = Path(os.environ.get("STRIKE_FILE", ""))
Cut = Callable[[Any, str], Any]


class StruckError(Exception):
    """What nobody expects."""


def _taken(when: str, kind: str, what: str) -> dict[str, Any] | None:
    try:
        moment: dict[str, Any] = json.loads(FILE.read_text())
        if (moment["when"], moment["kind"]) != (when, kind) or moment["what"] not in what:
            return None
        FILE.unlink()
    except OSError:
        return None
    return moment


async def _act(moment: dict[str, Any]) -> bool:
    """Do it; True where the connection is to be cut, which only the place knows how to."""
    action = moment["action"]
    if action == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if action == "raise":
        raise StruckError
    if action == "hang":
        await asyncio.sleep(moment["seconds"])
    return bool(action == "cut")


def around(owner: type, name: str, kind: str, what: Callable[[Any], str], cut: Cut) -> None:
    """Put points before and after an async method. `cut(arguments, when)` answers what the caller sees, or raises."""
    real = getattr(owner, name)

    @functools.wraps(real)
    async def struck(*arguments: Any, **named: Any) -> Any:
        moment = _taken("before", kind, what(arguments))
        if moment is not None and await _act(moment):
            lost = cut(arguments, "before")
            if lost is not None:
                return lost
        answer = await real(*arguments, **named)
        moment = _taken("after", kind, what(arguments))
        if moment is not None and await _act(moment):
            return cut(arguments, "after")
        return answer

    setattr(owner, name, struck)


def _cut_session(arguments: Any, when: str) -> None:
    """The socket of a database session is shut; a statement that was under way has lost its answer."""
    import asyncpg

    transport = arguments[0]._transport
    with (
        contextlib.suppress(OSError),
        socket.socket(fileno=os.dup(transport.get_extra_info("socket").fileno())) as s,
    ):
        s.shutdown(socket.SHUT_RDWR)
    if when == "after":
        raise asyncpg.ConnectionDoesNotExistError("connection was closed in the middle of operation")


def _cut_rail(arguments: Any, when: str) -> None:
    from cuota.rails.unavailable import RailUnavailable

    del arguments, when
    raise RailUnavailable


def _cut_receiver(arguments: Any, when: str) -> Any:
    from cuota.core.webhook.delivery import Attempt

    del arguments, when
    return Attempt(None, 1, "the connection was lost")


def _answers() -> None:
    """Points before and after an answer is sent."""
    from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

    real = RequestResponseCycle.send

    async def send(self: Any, message: Any) -> None:
        what = f"{self.scope['method']} {self.scope['path']}"
        if message["type"] == "http.response.start":
            moment = _taken("before", "answer", what)
            if moment is not None and await _act(moment):
                self.transport.abort()
        await real(self, message)
        if message["type"] == "http.response.body" and not message.get("more_body"):
            moment = _taken("after", "answer", what)
            if moment is not None:
                # The answer has left the process when the loop has had a turn.
                await asyncio.sleep(0.02)
                if await _act(moment):
                    self.transport.abort()

    RequestResponseCycle.send = send  # type: ignore[method-assign]


def _statement(arguments: Any) -> str:
    """The text of a statement; for the call that saves, also what it writes: `writes charges;` and the like."""
    sql = str(arguments[1])
    if "save_orders(" not in sql:
        return sql
    from cuota.db.order.outcomes import SAVE_PARAMETERS

    names = [parameter.split()[0] for parameter in SAVE_PARAMETERS]
    given = zip(names, arguments[2:], strict=True)
    return " ".join([sql, *(f"writes {name};" for name, value in given if value is not None)])


def arm() -> None:
    """Put the points into the service that this process is."""
    import asyncpg

    from cuota.rails.card.sandbox import SandboxCardRail
    from cuota.rails.http import GuardedClient
    from cuota.rails.message import SandboxMessageRail

    for name in ("fetchrow", "fetch", "execute"):
        around(asyncpg.Connection, name, "sql", _statement, _cut_session)
    for owner, name, cut in (
        (GuardedClient, "post", _cut_receiver),
        (SandboxCardRail, "charge", _cut_rail),
        (SandboxCardRail, "refund", _cut_rail),
        (SandboxMessageRail, "send", _cut_rail),
    ):
        title = f"{owner.__name__}.{name}"
        around(owner, name, "call", lambda _, title=title: title, cut)  # type: ignore[misc]
    _answers()
