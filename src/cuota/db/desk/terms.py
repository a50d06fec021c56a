"""Writes the search terms with which a merchant's people find orders (`core/desk/terms.py`), from the merchant's feed.

Only merchants whose dashboard has people have terms. A row of order_terms_read says how far the feed was read. The row is also
the lock between the job and an erasure, so the job never writes a term of an erased person.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from cuota.db.cluster.across import fetch_across
from cuota.db.session import Session

_BEHIND = """SELECT f.merchant_id FROM feeds f LEFT JOIN order_terms_read r ON r.merchant_id = f.merchant_id
    WHERE f.last_position > coalesce(r.position, 0)
        AND EXISTS (SELECT FROM desk_people p WHERE p.merchant_id = f.merchant_id)"""
_BEGIN = "INSERT INTO order_terms_read (merchant_id) VALUES ($1) ON CONFLICT DO NOTHING"
_LOCK = "SELECT position FROM order_terms_read WHERE merchant_id = $1 FOR UPDATE"
_COMING = (
    "SELECT position, order_id FROM feed WHERE merchant_id = $1 AND position > $2 ORDER BY position LIMIT $3"
)
_FACTS = """
SELECT o.order_id, o.amount, d.document -> 'consumer' AS consumer, p.payer, ARRAY(SELECT DISTINCT c.card_last4 FROM charges c
        WHERE c.merchant_id = $1 AND c.order_id = o.order_id) AS cards
FROM orders o JOIN order_details d ON d.merchant_id = $1 AND d.order_id = o.order_id
    LEFT JOIN plans p ON p.merchant_id = $1 AND p.order_id = o.order_id
WHERE o.merchant_id = $1 AND o.order_id = ANY ($2::uuid[])
"""
_ADD = """INSERT INTO order_terms (merchant_id, term, order_id) SELECT $1, q.term, q.order_id
    FROM unnest($2::bigint[], $3::uuid[]) AS q (term, order_id) ON CONFLICT DO NOTHING"""
_READ = "UPDATE order_terms_read SET position = $2 WHERE merchant_id = $1"
_FORGET = "DELETE FROM order_terms WHERE merchant_id = $1 AND order_id = ANY ($2::uuid[])"


@dataclass(frozen=True, slots=True)
class OrderFacts:
    """The data from which an order's terms are made.

    `people` are JSON objects: the merchant's data and the consumer's data.
    """

    order_id: UUID
    amount: int
    people: tuple[dict[str, Any], ...]
    cards: tuple[str, ...]


async def merchants_behind(session: Session) -> list[UUID]:
    """Return the merchants whose feed has events that were not read yet."""
    return [row["merchant_id"] for row in await fetch_across(session, _BEHIND)]


async def lock(session: Session, merchant_id: UUID) -> int:
    """Lock the merchant's terms until the transaction ends. Return the position up to which the feed was read."""
    await session.fetchrow(_BEGIN, merchant_id)
    row = await session.fetchrow(_LOCK, merchant_id)
    assert row is not None
    return int(row["position"])


async def coming(session: Session, merchant_id: UUID, position: int, most: int) -> tuple[int, list[UUID]]:
    """Return the position after at most `most` further events, and the ids of their orders."""
    rows = await session.fetch(_COMING, merchant_id, position, most)
    ids = list(dict.fromkeys(row["order_id"] for row in rows))
    return (rows[-1]["position"] if rows else position), ids


async def facts(session: Session, merchant_id: UUID, order_ids: list[UUID]) -> list[OrderFacts]:
    """Read the data for the terms of these orders.

    Ids that do not belong to orders are left out, because payouts also have events.
    """
    return [_facts(row) for row in await session.fetch(_FACTS, merchant_id, order_ids)]


def _facts(row: Any) -> OrderFacts:
    people = (json.loads(row[name] or "null") for name in ("consumer", "payer"))
    return OrderFacts(row["order_id"], row["amount"], tuple(filter(None, people)), tuple(row["cards"]))


async def add(session: Session, merchant_id: UUID, terms: Iterable[tuple[int, UUID]], position: int) -> None:
    """Add pairs of term and order id, and record how far the feed was read."""
    pairs = list(terms)
    await session.fetch(_ADD, merchant_id, [term for term, _ in pairs], [order_id for _, order_id in pairs])
    await session.fetchrow(_READ, merchant_id, position)


async def forget(session: Session, merchant_id: UUID, order_ids: list[UUID]) -> None:
    """Delete all terms of these orders, in the transaction that erases their consumer."""
    await lock(session, merchant_id)
    await session.fetch(_FORGET, merchant_id, order_ids)
