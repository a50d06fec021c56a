"""Writes the operator's log: each action with the actor, the IP address and the reason."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

from cuota.core.operator.person import Operator
from cuota.core.reason import printable
from cuota.db.operator import operator_log
from cuota.db.operator.operator_log import OperatorEntry
from cuota.db.sandbox import clock
from cuota.db.session import Session
from cuota.flows.afterwards import afterwards
from cuota.flows.context import Context, new_id
from cuota.flows.desk.record import Actor, AuditNote, record

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class OperatorActor:
    """The actor, and the IP address. For a command, `person` is None and `user` is the user of the operating system.

    For a background job, `job` names the job, and the other fields are empty.
    """

    person: Operator | None
    address: str = ""
    user: str = ""
    job: str = ""

    @property
    def words(self) -> str:
        """The person's name and e-mail address, or the job or command."""
        if self.person is not None:
            return f"{self.person.name} <{self.person.email}>"
        if self.job:
            return f"the service, {self.job}"
        return f"command line, user {self.user}" if self.user else "command line"

    @property
    def role(self) -> str:
        """The person's role, or the kind of actor if the actor is not a person."""
        return self.person.role if self.person is not None else "job" if self.job else "command"


@dataclass(frozen=True, slots=True)
class OperatorNote:
    """One action for the log.

    `about` is the id of its subject; `before` and `after` contain the values that the action changed.
    """

    action: str
    subject: str
    reason: str
    about: UUID | None = None
    before: dict[str, Any] | None = None
    after: dict[str, Any] | None = None


async def log_action(
    context: Context, actor: OperatorActor, note: OperatorNote, session: Session | None = None
) -> None:
    """Write an entry. With `session`, the entry is part of that session's transaction.

    An action that changes other tables is logged first, so that a crash never leaves an action without an entry.
    """
    await operator_log.add(session or context.pool, _entry(context.new_id(), context.now(), actor, note))


async def log_done(session: Session, actor: OperatorActor, note: OperatorNote) -> None:
    """Write an entry about a command that is done. A failure is logged and not raised.

    For commands on the whole database, which cannot write the entry first: the table may not exist yet, or the command replaces it.
    """
    with afterwards(f"{note.action} in the operator's log"):
        at = (await clock.read(session)).now
        await operator_log.add(session, _entry(new_id(), at, actor, note))


def _entry(entry_id: UUID, at: datetime, actor: OperatorActor, note: OperatorNote) -> OperatorEntry:
    person = actor.person
    return OperatorEntry(
        entry_id, at, person.person_id if person else None, actor.words, actor.role, actor.address,
        note.action, note.about, printable(note.subject), printable(note.reason), note.before, note.after,
    )  # fmt: skip


async def tell_merchant(
    context: Context, merchant_id: UUID, note: OperatorNote, session: Session | None = None
) -> None:
    """Also write an action into the merchant's own audit log, without the reason.

    With `session`, the entry is part of that session's transaction. Without `session`, the action is already done, so a failure
    is logged and not raised.
    """
    told = AuditNote(note.action, "Your payment provider changed this", before=note.before, after=note.after)
    if session is not None:
        await record(context, merchant_id, Actor(None), told, session)
        return
    with afterwards(f"{note.action} in the merchant's audit log"):
        await record(context, merchant_id, Actor(None), told)


async def logged(
    context: Context, actor: OperatorActor, note: OperatorNote, act: Callable[[Context], Awaitable[T]]
) -> T:
    """Write the entry, and then act. If the action is refused or fails, write a second entry that says so."""
    await log_action(context, actor, note)
    async with refusal_logged(context, actor, note):
        return await act(context)


@asynccontextmanager
async def refusal_logged(context: Context, actor: OperatorActor, note: OperatorNote) -> AsyncIterator[None]:
    """If the action of the `async with` block is refused or fails, write an entry that says so.

    Use this alone if the action writes its own entry in its transaction. Then a repeated action that changes nothing has no entry.
    """
    try:
        yield
    except Exception as problem:
        await log_refusal(context, actor, note, str(problem))
        raise


async def log_refusal(context: Context, actor: OperatorActor, note: OperatorNote, reason: str) -> None:
    """Write that an action, which was logged before, was refused or failed."""
    refusal = replace(note, action=f"{note.action}.refused", reason=reason)
    with afterwards(f"{refusal.action} in the operator's log"):
        await log_action(context, actor, refusal)
