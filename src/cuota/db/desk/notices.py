"""Stores the mails to a merchant's own people that are waiting to be sent. All times are of the real clock."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from cuota.core.desk.notice import StaffNoticeKind
from cuota.db.cluster.across import fetch_across, sweep
from cuota.db.old_rows import deleting_some
from cuota.db.session import Session

_ADD = """INSERT INTO desk_notices (merchant_id, notice_id, kind, email, facts, created_at, mail_at)
    VALUES ($1, $2, $3, $4, $5::text::json, $6, $6)"""
_MERCHANTS_WITH_NOTICES = "SELECT DISTINCT merchant_id FROM desk_notices WHERE mail_at <= $1"
# This claims the mail. If this process dies, the mail is retried later.
_CLAIM = """WITH due AS MATERIALIZED (
    SELECT notice_id FROM desk_notices WHERE merchant_id = $1 AND mail_at <= $2 ORDER BY mail_at LIMIT 20 FOR UPDATE SKIP LOCKED
)
UPDATE desk_notices n SET mail_at = $3, tries = tries + 1 FROM due
    WHERE n.merchant_id = $1 AND n.notice_id = due.notice_id AND n.mail_at <= $2
    RETURNING n.notice_id, n.kind, n.email, n.facts::text AS facts, n.created_at, n.tries"""
_SENT = "UPDATE desk_notices SET mail_at = NULL WHERE merchant_id = $1 AND notice_id = $2"
_MERCHANTS_WITH_OLD = "SELECT DISTINCT merchant_id FROM desk_notices WHERE created_at < $1"
_FORGET = deleting_some("desk_notices", "notice_id", "created_at < $2")


@dataclass(frozen=True, slots=True)
class StaffNotice:
    """A mail that is due. `tries` includes the next attempt. `facts` are those of `core/desk/notice.py`."""

    notice_id: UUID
    kind: StaffNoticeKind
    email: str
    facts: dict[str, str | None]
    created_at: datetime
    tries: int


async def add(session: Session, merchant_id: UUID, notice: StaffNotice) -> None:
    """Queue a mail."""
    await session.fetchrow(
        _ADD, merchant_id, notice.notice_id, notice.kind, notice.email, json.dumps(notice.facts), notice.created_at
    )  # fmt: skip


async def merchants_with_notices(session: Session, now: datetime) -> list[UUID]:
    """Return the merchants with mails that are due."""
    return [row["merchant_id"] for row in await fetch_across(session, _MERCHANTS_WITH_NOTICES, now)]


async def claim(session: Session, merchant_id: UUID, now: datetime, again_at: datetime) -> list[StaffNotice]:
    """Claim mails that are due, the oldest first. A mail that is not sent by `again_at` can be claimed again."""
    found = [
        StaffNotice(row["notice_id"], StaffNoticeKind(row["kind"]), row["email"], json.loads(row["facts"]), row["created_at"], row["tries"])
        for row in await session.fetch(_CLAIM, merchant_id, now, again_at)
    ]  # fmt: skip
    # An UPDATE returns its rows in no order.
    return sorted(found, key=lambda notice: notice.created_at)


async def sent(session: Session, merchant_id: UUID, notice_id: UUID) -> None:
    """Record that a mail was sent, or will not be retried."""
    await session.fetchrow(_SENT, merchant_id, notice_id)


async def forget(session: Session, before: datetime) -> int:
    """Delete the mails that were queued before this time, some of each merchant. Return how many were deleted."""
    return await sweep(session, _MERCHANTS_WITH_OLD, _FORGET, before)
