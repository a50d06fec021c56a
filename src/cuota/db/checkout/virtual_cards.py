"""Stores which order a virtual card belongs to, and which browser has seen it, but never a card number."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from cuota.db.cluster.across import fetch_across
from cuota.db.session import Session

# The lease of a claim: only one worker calls the issuer. If that worker dies, another one takes over after this time.
LEASE = timedelta(seconds=60)

_INTEGRATION = "SELECT integration FROM sdk_checkouts WHERE merchant_id = $1 AND order_id = $2"
_CLAIM = """INSERT INTO virtual_cards (merchant_id, order_id, key, session_hash, created_at)
    SELECT merchant_id, order_id, $3, $4, $5 FROM plans
    WHERE merchant_id = $1 AND order_id = $2 AND browser = $4 ON CONFLICT DO NOTHING"""
_READ = """SELECT key, issued_at FROM virtual_cards
    WHERE merchant_id = $1 AND order_id = $2 AND session_hash = $3"""
_ISSUED = """UPDATE virtual_cards SET issued_at = coalesce(issued_at, $3)
    WHERE merchant_id = $1 AND order_id = $2"""
# The time to show the card starts when the card is first shown.
_REVEALED = """UPDATE virtual_cards SET revealed_at = coalesce(revealed_at, $3), hide_at = coalesce(hide_at, $4)
    WHERE merchant_id = $1 AND order_id = $2 AND (revealed_at IS NULL OR revealed_at > $5) RETURNING 1"""
_MERCHANTS_TOLD = (
    "SELECT DISTINCT merchant_id FROM virtual_cards WHERE tell_at <= $1 AND issued_at IS NOT NULL"
)
_TELL = """
WITH due AS MATERIALIZED (
    SELECT order_id FROM virtual_cards WHERE merchant_id = $1 AND tell_at <= $2 AND issued_at IS NOT NULL
    ORDER BY tell_at LIMIT $4 FOR UPDATE SKIP LOCKED
)
UPDATE virtual_cards v SET tell_at = $3, tries = least(v.tries + 1, 1000) FROM due
    WHERE v.merchant_id = $1 AND v.order_id = due.order_id AND v.tell_at <= $2
RETURNING v.merchant_id, v.order_id, v.key, v.changes, v.tries
"""
_TOLD = """UPDATE virtual_cards SET tell_at = NULL, tries = 0
    WHERE merchant_id = $1 AND order_id = $2 AND changes = $3"""
_LATER = """UPDATE virtual_cards SET tell_at = $4
    WHERE merchant_id = $1 AND order_id = $2 AND changes = $3"""
_MERCHANTS_HIDDEN = "SELECT DISTINCT merchant_id FROM virtual_cards WHERE hide_at <= $1"
_TO_HIDE = "SELECT order_id, key FROM virtual_cards WHERE merchant_id = $1 AND hide_at <= $2 LIMIT $3"
_HIDDEN = "UPDATE virtual_cards SET hide_at = NULL WHERE merchant_id = $1 AND order_id = $2"


@dataclass(frozen=True, slots=True)
class StoredCard:
    """An order's card: the issuer's key, and when the card was issued and first shown."""

    key: UUID
    issued_at: datetime | None


@dataclass(frozen=True, slots=True)
class ToTell:
    """A card whose limit has fallen. `changes` is the number of changes at the time of the claim; later changes are reported later."""

    merchant_id: UUID
    order_id: UUID
    key: UUID
    changes: int
    tries: int


async def is_virtual(session: Session, merchant_id: UUID, order_id: UUID) -> bool:
    """Return whether the merchant is paid for the order by a virtual card."""
    row = await session.fetchrow(_INTEGRATION, merchant_id, order_id)
    return row is not None and row["integration"] == "virtual_card"


async def claim(
    session: Session, merchant_id: UUID, order_id: UUID, key: UUID, session_hash: bytes, now: datetime
) -> StoredCard | None:
    """Return the card of this browser, and create its row if there was none. Return None for a browser that did not pay."""
    await session.fetchrow(_CLAIM, merchant_id, order_id, key, session_hash, now)
    row = await session.fetchrow(_READ, merchant_id, order_id, session_hash)
    return None if row is None else StoredCard(**row)


async def issued(session: Session, merchant_id: UUID, order_id: UUID, now: datetime) -> None:
    """Record that the issuer has made the card. From now on, every void is reported to the issuer."""
    await session.fetchrow(_ISSUED, merchant_id, order_id, now)


async def revealed(
    session: Session, merchant_id: UUID, order_id: UUID, now: datetime, shown_for: timedelta
) -> bool:
    """Record that the card is about to be shown. Return False if the time to show it is over."""
    row = await session.fetchrow(_REVEALED, merchant_id, order_id, now, now + shown_for, now - shown_for)
    return row is not None


async def claim_to_tell(session: Session, now: datetime, limit: int) -> list[ToTell]:
    """Claim cards whose issuer does not have the current limit yet, at most `limit` of each merchant."""
    merchants = await fetch_across(session, _MERCHANTS_TOLD, now)
    return [
        ToTell(**row)
        for merchant in merchants
        for row in await session.fetch(_TELL, merchant["merchant_id"], now, now + LEASE, limit)
    ]


async def told(session: Session, card: ToTell) -> None:
    """Record that the issuer has the current limit, unless there was another void meanwhile."""
    await session.fetchrow(_TOLD, card.merchant_id, card.order_id, card.changes)


async def tell_later(session: Session, card: ToTell, at: datetime) -> None:
    """Record that the issuer did not answer, and when to retry."""
    await session.fetchrow(_LATER, card.merchant_id, card.order_id, card.changes, at)


async def to_hide(session: Session, now: datetime, limit: int) -> list[tuple[UUID, UUID, UUID]]:
    """Return (merchant id, order id, key) of the cards whose time to be shown has ended. Hiding a card twice does no harm."""
    merchants = await fetch_across(session, _MERCHANTS_HIDDEN, now)
    return [
        (merchant["merchant_id"], row["order_id"], row["key"])
        for merchant in merchants
        for row in await session.fetch(_TO_HIDE, merchant["merchant_id"], now, limit)
    ]


async def hidden(session: Session, merchant_id: UUID, order_id: UUID) -> None:
    """Record that the issuer no longer shows the card."""
    await session.fetchrow(_HIDDEN, merchant_id, order_id)
