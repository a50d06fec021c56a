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
# A page reads at most this many entries, however few of them match, and then says where the next page begins.
SCANNED = 20_000
_COLUMNS = """entry_id, at, person_id, actor, role, address, action, about, subject, reason, before::text AS before,
    after::text AS after"""
_PAGE = f"""SELECT {_COLUMNS} FROM (SELECT * FROM operator_log WHERE entry_id < $1 ORDER BY entry_id DESC LIMIT {SCANNED}) newest
    WHERE ($2 = '' OR starts_with(action, $2))
        AND ($3 = '' OR strpos(lower(actor), $3) > 0)
    ORDER BY entry_id DESC LIMIT $4"""
_LAST_SCANNED = f"SELECT entry_id FROM operator_log WHERE entry_id < $1 ORDER BY entry_id DESC OFFSET {SCANNED - 1} LIMIT 1"
# The same for one merchant, consumer, order or dispute. A plan for both statements could not use the index operator_log_about.
_PAGE_ABOUT = _PAGE.replace("entry_id < $1", "entry_id < $1 AND about = $5")
_LAST_SCANNED_ABOUT = _LAST_SCANNED.replace("entry_id < $1", "entry_id < $1 AND about = $2")


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
    asked = before, action, actor, limit
    if about is None:
        rows = await session.fetch(_PAGE, *asked)
    else:
        rows = await session.fetch(_PAGE_ABOUT, *asked, about)
    return [_entry(row) for row in rows]


async def last_scanned(session: Session, before: UUID, about: UUID | None = None) -> UUID | None:
    """Return the id of the last entry that a page below `before` reads, or None if the page reads the log to its end."""
    if about is None:
        row = await session.fetchrow(_LAST_SCANNED, before)
    else:
        row = await session.fetchrow(_LAST_SCANNED_ABOUT, before, about)
    return None if row is None else row["entry_id"]


def _entry(row: Any) -> OperatorEntry:
    *facts, before, after = row
    return OperatorEntry(*facts, *(None if each is None else json.loads(each) for each in (before, after)))
