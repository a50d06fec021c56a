"""Failpoints of the harness: each one causes one fault at a named step of the service.

The file STRIKE_FILE names one moment as JSON: `when` (before, after), `kind` (sql, call, answer), `what` (a piece of a
statement, of a function's name, or of `METHOD /path`) and `action`. The first process that reaches the step deletes the
file and performs the action:

- kill: the process sends SIGKILL to itself
- raise: the step raises an exception that no code expects
- hang: the step sleeps for `seconds`
- cut: the step loses its connection to the database, the caller, or a rail. If `when` is after, the step's result is
  lost too.
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
from dataclasses import replace
from pathlib import Path
from typing import Any

FILE = Path(os.environ.get("STRIKE_FILE", ""))
Cut = Callable[[Any, str], Any]


class StruckError(Exception):
    """An exception that no code expects."""


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
    """Perform the action. Return True if the caller must cut the connection, because only the caller knows how."""
    action = moment["action"]
    if action == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    if action == "raise":
        raise StruckError
    if action == "hang":
        await asyncio.sleep(moment["seconds"])
    return bool(action == "cut")


def around(owner: type, name: str, kind: str, what: Callable[[Any], str], cut: Cut) -> None:
    """Put failpoints before and after an async method. `cut(arguments, when)` returns the caller's result, or raises."""
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
    """Shut down the socket of a database session. A statement in progress loses its result."""
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
    """Put failpoints before and after a response is sent."""
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
                # Give the event loop time to send the response.
                await asyncio.sleep(0.02)
                if await _act(moment):
                    self.transport.abort()

    RequestResponseCycle.send = send  # type: ignore[method-assign]


def _statement(arguments: Any) -> str:
    """Return the statement's text. For the call of save_orders, add the tables that it writes, such as `writes charges;`."""
    sql = str(arguments[1])
    if "save_orders(" not in sql:
        return sql
    from cuota.db.order.outcomes import SAVE_PARAMETERS

    names = [parameter.split()[0] for parameter in SAVE_PARAMETERS]
    given = zip(names, arguments[2:], strict=True)
    return " ".join([sql, *(f"writes {name};" for name, value in given if value is not None)])


def _hurry() -> None:
    """Let every background job look for work at least each second. Some wait 15 seconds, and the tests would wait for
    them."""
    from cuota.work import loop

    real = loop.jobs_of
    loop.jobs_of = lambda webhooks: tuple(replace(job, rest=min(job.rest, 1.0)) for job in real(webhooks))


def arm() -> None:
    """Put the failpoints into this process of the service."""
    import asyncpg

    from cuota.rails.bank.sandbox import SandboxBankRail
    from cuota.rails.card.rails import CardRails
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
        (SandboxBankRail, "send", _cut_rail),
        (SandboxBankRail, "find", _cut_rail),
        *(
            (CardRails, name, _cut_rail)
            for name in ("keep", "charge", "find_charge", "give_up", "refund", "answer_chargeback")
        ),
    ):
        title = f"{owner.__name__}.{name}"
        around(owner, name, "call", lambda _, title=title: title, cut)  # type: ignore[misc]
    _answers()
    _hurry()
