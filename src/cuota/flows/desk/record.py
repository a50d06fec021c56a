"""Writes the audit log: who did what in the merchant's dashboard, from where, and why."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from cuota.core.desk.person import Person
from cuota.core.reason import LONGEST_REASON
from cuota.db.desk import audit
from cuota.db.desk.audit import Entry
from cuota.db.session import Session
from cuota.flows.context import Context


@dataclass(frozen=True, slots=True)
class Actor:
    """Who acts, and the IP address. `person` is None for the operator, who acts by a command or in the operator's dashboard."""

    person: Person | None
    address: str = ""

    @property
    def words(self) -> str:
        """The actor's name and e-mail address, as they are now."""
        return "operator" if self.person is None else f"{self.person.name} <{self.person.email}>"


@dataclass(frozen=True, slots=True)
class AuditNote:
    """One action for the log. `before` and `after` hold what the action changed."""

    action: str
    subject: str
    reason: str = ""
    order_id: UUID | None = None
    before: dict[str, Any] | None = field(default=None)
    after: dict[str, Any] | None = field(default=None)


async def record(
    context: Context, merchant_id: UUID, actor: Actor, done: AuditNote, session: Session | None = None
) -> UUID:
    """Write an entry, and return its id. With `session`, in that session's transaction."""
    entry_id, person = context.new_id(), actor.person
    entry = Entry(
        entry_id, context.now(), person.person_id if person else None, actor.words,
        person.role if person else "operator", actor.address, done.action, done.order_id, done.subject,
        done.reason[:LONGEST_REASON], done.before, done.after,
    )  # fmt: skip
    await audit.add(session or context.pool, merchant_id, entry)
    return entry_id
