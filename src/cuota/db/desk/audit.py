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
# A page reads at most this many entries, however few of them match, and then says where the next page begins.
SCANNED = 20_000
_PAGE = f"""SELECT {_COLUMNS} FROM (SELECT * FROM audit_log WHERE merchant_id = $1 AND entry_id < $2
            ORDER BY entry_id DESC LIMIT {SCANNED}) newest
    WHERE ($3 = '' OR starts_with(action, $3))
        AND ($4 = '' OR strpos(lower(actor), $4) > 0)
    ORDER BY entry_id DESC LIMIT $5"""
_LAST_SCANNED = f"""SELECT entry_id FROM audit_log WHERE merchant_id = $1 AND entry_id < $2
    ORDER BY entry_id DESC OFFSET {SCANNED - 1} LIMIT 1"""
_OF_ORDER = f"""SELECT {_COLUMNS} FROM audit_log WHERE merchant_id = $1 AND order_id = $2
    ORDER BY entry_id DESC LIMIT $3"""

# What a person moved alone of an order: the entry is written before the money moves, with the totals before and after. The index of an
# order's entries holds few rows. A subject ends with the movement's reference, and all references have the length of $7. The entries of
# one reference, for example after a double click, are about one movement: they count once, and those of $7 do not count.
_ALONE = """SELECT coalesce(sum(m.amount), 0) * 100 AS cents FROM (
    SELECT max((after ->> $5)::numeric - (before ->> $5)::numeric) AS amount FROM audit_log
    WHERE merchant_id = $1 AND order_id = $2 AND person_id = $3 AND action = $4 AND at > $6
        AND right(subject, length($7::text)) <> $7::text
    GROUP BY right(subject, length($7::text))) m"""


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
    session: Session, merchant_id: UUID, before: UUID, limit: int, *, action: str = "", actor: str = ""
) -> list[Entry]:
    """Return entries with an id below `before`, newest first.

    `action` is the beginning of the action's name, `actor` a part of the actor's name or address, in lower case.
    """
    rows = await session.fetch(_PAGE, merchant_id, before, action, actor, limit)
    return [_entry(row) for row in rows]


async def last_scanned(session: Session, merchant_id: UUID, before: UUID) -> UUID | None:
    """Return the id of the last entry that a page below `before` reads, or None if the page reads the log to its end."""
    row = await session.fetchrow(_LAST_SCANNED, merchant_id, before)
    return None if row is None else row["entry_id"]


async def of_order(session: Session, merchant_id: UUID, order_id: UUID, limit: int) -> list[Entry]:
    """Return the newest entries about an order, newest first."""
    return [_entry(row) for row in await session.fetch(_OF_ORDER, merchant_id, order_id, limit)]


def _entry(row: Any) -> Entry:
    *facts, before, after = row
    return Entry(*facts, *(None if each is None else json.loads(each) for each in (before, after)))


async def moved_alone(
    session: Session,
    merchant_id: UUID,
    order_id: UUID,
    person_id: UUID,
    *,
    action: str,
    total: str,
    since: datetime,
    but: str,
) -> int:
    """Return the cents by which a person's own entries of this action raised an order's total, without those that end with `but`.

    Entries whose last words, as long as `but`, are the same count once, with the highest amount.
    """
    row = await session.fetchrow(_ALONE, merchant_id, order_id, person_id, action, total, since, but)
    return 0 if row is None else int(row["cents"])
