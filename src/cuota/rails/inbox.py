"""The sandbox's inbox: the texts and e-mails that consumers would have received. It keeps the newest 10,000."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from cuota.core.consumer import is_us_number, typed_number
from cuota.rails.stores import RailDatabase

KEPT = 10_000
# One statement for all messages that are sent at the same moment. Old messages are deleted a hundred at a time, so most sends do
# not look for them. NOT EXISTS prevents a repeated call from using up a number. If two calls run at the same moment, ON CONFLICT
# decides.
PUT = f"""
WITH put AS (
    INSERT INTO message_simulator.inbox (key, channel, recipient, subject, text, created_at)
    SELECT q.key, q.channel, q.recipient, q.subject, q.text, q.created_at
    FROM unnest($1::uuid[], $2::text[], $3::text[], $4::text[], $5::text[], $6::timestamptz[])
        WITH ORDINALITY AS q (key, channel, recipient, subject, text, created_at, nth)
    WHERE NOT EXISTS (SELECT FROM message_simulator.inbox i WHERE i.key = q.key AND i.channel = q.channel)
    ORDER BY q.nth
    ON CONFLICT (key, channel) DO NOTHING RETURNING number
)
DELETE FROM message_simulator.inbox old USING put
WHERE put.number % 100 = 0 AND old.number <= put.number - {KEPT}
"""
_COLUMNS = "number, key, channel, recipient, subject, text, created_at"
_NEWEST = f"""
SELECT {_COLUMNS} FROM message_simulator.inbox WHERE number < $1 ORDER BY number DESC LIMIT $2
"""
_NEWEST_TO = f"""
SELECT {_COLUMNS} FROM message_simulator.inbox WHERE lower(recipient) = lower($3) AND number < $1 ORDER BY number DESC LIMIT $2
"""
_FORGET = "DELETE FROM message_simulator.inbox WHERE lower(recipient) = ANY ($1::text[]) RETURNING 1"
_END = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Received:
    """One message in the inbox. `number` increases with each message; `recipient` is a ten-digit number or an e-mail address."""

    number: int
    key: UUID
    channel: str
    recipient: str
    subject: str
    text: str
    created_at: datetime


def recipient_of(typed: str) -> str:
    """Convert a phone number or e-mail address that a person typed to the form that the inbox stores."""
    number = typed_number(typed)
    return number if is_us_number(number) else typed.strip()


async def look(
    shelf: RailDatabase, *, to: str = "", before: int | None = None, limit: int = 50
) -> list[Received]:
    """Return messages, newest first: of one recipient or of all. `before` is the last number of the previous page."""
    end = _END if before is None else before
    if to:
        rows = await shelf.fetch(_NEWEST_TO, end, limit, recipient_of(to))
    else:
        rows = await shelf.fetch(_NEWEST, end, limit)
    return [Received(**row) for row in rows]


async def forget(shelf: RailDatabase, recipients: Sequence[str]) -> int:
    """Delete all messages to these numbers and addresses. Return how many there were."""
    return len(await shelf.fetch(_FORGET, [recipient.lower() for recipient in recipients]))
