"""The append-only log of the actions of the operator's people."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from cuota.db.session import Session

_ADD = """INSERT INTO operator_log
    (entry_id, at, person_id, actor, role, address, action, about, subject, reason, before, after)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11::text::json, $12::text::json)"""
_PAGE = """SELECT entry_id, at, person_id, actor, role, address, action, about, subject, reason, before::text AS before,
        after::text AS after
    FROM (SELECT * FROM operator_log WHERE entry_id < $1 AND ($2::uuid IS NULL OR about = $2)
        ORDER BY entry_id DESC LIMIT 20000) newest
    WHERE ($3 = '' OR starts_with(action, $3))
        AND ($4 = '' OR strpos(lower(actor), $4) > 0)
    ORDER BY entry_id DESC LIMIT $5"""


@dataclass(frozen=True, slots=True)
class OperatorEntry:
    """One action of a person, or of a command (then `person_id` is None).

    `about` is the id of the merchant, consumer, order or dispute. `before` and `after` are JSON objects.
    """

    entry_id: UUID
    at: datetime
    person_id: UUID | None
    actor: str
    role: str
    address: str
    action: str
    about: UUID | None
    subject: str
    reason: str
    before: dict[str, Any] | None = None
    after: dict[str, Any] | None = None


async def add(session: Session, entry: OperatorEntry) -> None:
    """Write an entry."""
    before, after = (None if each is None else json.dumps(each) for each in (entry.before, entry.after))
    await session.fetchrow(
        _ADD, entry.entry_id, entry.at, entry.person_id, entry.actor, entry.role, entry.address, entry.action,
        entry.about, entry.subject, entry.reason, before, after,
    )  # fmt: skip


async def page(
    session: Session,
    before: UUID,
    limit: int,
    *,
    about: UUID | None = None,
    action: str = "",
    actor: str = "",
) -> list[OperatorEntry]:
    """Return entries with an id below `before`, newest first.

    `action` is the beginning of the action's name, `actor` a part of the actor's name or address, in lower case.
    """
    rows = await session.fetch(_PAGE, before, about, action, actor, limit)
    return [_entry(row) for row in rows]


def _entry(row: Any) -> OperatorEntry:
    *facts, before, after = row
    return OperatorEntry(*facts, *(None if each is None else json.loads(each) for each in (before, after)))
