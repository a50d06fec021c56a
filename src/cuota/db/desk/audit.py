"""The audit log of a merchant's dashboard: append-only."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from cuota.db.session import Session

_ADD = """INSERT INTO audit_log
    (merchant_id, entry_id, at, person_id, actor, role, address, action, order_id, subject, reason, before, after)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12::text::json, $13::text::json)"""
_COLUMNS = """entry_id, at, person_id, actor, role, address, action, order_id, subject, reason, before::text AS before,
    after::text AS after"""
# A search reads at most this many entries, so that a long log costs a request no more than a short one.
SCANNED = 20_000
_PAGE = f"""SELECT {_COLUMNS} FROM (SELECT * FROM audit_log WHERE merchant_id = $1 AND entry_id < $2
            AND ($3::uuid IS NULL OR order_id = $3) ORDER BY entry_id DESC LIMIT {SCANNED}) newest
    WHERE ($4 = '' OR starts_with(action, $4))
        AND ($5 = '' OR strpos(lower(actor), $5) > 0)
    ORDER BY entry_id DESC LIMIT $6"""


@dataclass(frozen=True, slots=True)
class Entry:
    """One action of a person, of a program through the API, or of the operator. `person_id` is None unless a person acted.

    `before` and `after` are JSON objects with the changed values, under their API names.
    """

    entry_id: UUID
    at: datetime
    person_id: UUID | None
    actor: str
    role: str
    address: str
    action: str
    order_id: UUID | None
    subject: str
    reason: str = ""
    before: dict[str, Any] | None = None
    after: dict[str, Any] | None = None


async def add(session: Session, merchant_id: UUID, entry: Entry) -> None:
    """Write an entry."""
    before, after = (None if each is None else json.dumps(each) for each in (entry.before, entry.after))
    await session.fetchrow(
        _ADD, merchant_id, entry.entry_id, entry.at, entry.person_id, entry.actor, entry.role, entry.address,
        entry.action, entry.order_id, entry.subject, entry.reason, before, after,
    )  # fmt: skip


async def page(
    session: Session,
    merchant_id: UUID,
    before: UUID,
    limit: int,
    *,
    order_id: UUID | None = None,
    action: str = "",
    actor: str = "",
) -> list[Entry]:
    """Return entries with an id below `before`, newest first.

    `action` is the beginning of the action's name, `actor` a part of the actor's name or address, in lower case.
    """
    rows = await session.fetch(_PAGE, merchant_id, before, order_id, action, actor, limit)
    return [_entry(row) for row in rows]


def _entry(row: Any) -> Entry:
    *facts, before, after = row
    return Entry(*facts, *(None if each is None else json.loads(each) for each in (before, after)))
