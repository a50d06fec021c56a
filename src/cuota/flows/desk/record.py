"""Writes a merchant's audit log: the actions in the dashboard and by the API, with actor, IP address and reason."""

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
    """The actor and the IP address. The actor is a person or, with `credential`, a program that calls the API.

    Without either, the actor is the operator, by a command or in the operator's dashboard. `credential` is the name of the merchant's
    credential with its client id.
    """

    person: Person | None
    address: str = ""
    credential: str = ""

    @property
    def words(self) -> str:
        """The person's current name and e-mail address, or the name of the credential."""
        if self.person is not None:
            return f"{self.person.name} <{self.person.email}>"
        return f"API credential {self.credential}" if self.credential else "operator"

    @property
    def role(self) -> str:
        """The person's role, `api` for a call of the API, or `operator`."""
        if self.person is not None:
            return self.person.role
        return "api" if self.credential else "operator"


OPERATOR = Actor(None)


@dataclass(frozen=True, slots=True)
class Cause:
    """The actor of a change, and the reason. A call of the API gives no reason."""

    actor: Actor
    reason: str = ""


@dataclass(frozen=True, slots=True)
class AuditNote:
    """One action for the log. `before` and `after` contain the values that the action changed."""

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
        actor.role, actor.address, done.action, done.order_id, done.subject,
        done.reason[:LONGEST_REASON], done.before, done.after,
    )  # fmt: skip
    await audit.add(session or context.pool, merchant_id, entry)
    return entry_id
