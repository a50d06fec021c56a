"""Writes the operator's log: who did what, from where, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from cuota.core.operator.person import Operator
from cuota.db.operator import operator_log
from cuota.db.operator.operator_log import OperatorEntry
from cuota.db.session import Session
from cuota.flows.context import Context
from cuota.flows.desk.record import LONGEST_REASON


@dataclass(frozen=True, slots=True)
class OperatorActor:
    """Who acts, and the IP address. `person` is None for a command."""

    person: Operator | None
    address: str = ""

    @property
    def words(self) -> str:
        """The actor's name and e-mail address, as they are now."""
        return "command line" if self.person is None else f"{self.person.name} <{self.person.email}>"


COMMAND_LINE = OperatorActor(None)


@dataclass(frozen=True, slots=True)
class OperatorNote:
    """One action for the log. `about` is the id of its subject; `before` and `after` hold what the action changed."""

    action: str
    subject: str
    reason: str
    about: UUID | None = None
    before: dict[str, Any] | None = None
    after: dict[str, Any] | None = None


async def log_action(
    context: Context, actor: OperatorActor, note: OperatorNote, session: Session | None = None
) -> None:
    """Write an entry. With `session`, in that session's transaction.

    An action that changes other tables is logged before it is done, so that a crash leaves no action without its entry.
    """
    person = actor.person
    entry = OperatorEntry(
        context.new_id(), context.now(), person.person_id if person else None, actor.words,
        person.role if person else "command", actor.address, note.action, note.about, note.subject,
        note.reason[:LONGEST_REASON], note.before, note.after,
    )  # fmt: skip
    await operator_log.add(session or context.pool, entry)
