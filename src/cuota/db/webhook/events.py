"""Publishes events into each merchant's feed, and reads the data for their bodies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from cuota.core.dispute.dispute import Dispute, DisputeKind
from cuota.core.dispute.return_notice import ReturnNotice
from cuota.db.cluster.across import fetch_across
from cuota.db.dispute import disputes, opened_chargebacks
from cuota.db.dispute.opened_chargebacks import OpenedChargeback
from cuota.db.nested import Nested
from cuota.db.order.columns import MONEY, MOVED, movements_of, order_of
from cuota.db.order.orders import OrderRecord
from cuota.db.session import Session
from cuota.db.webhook import payout_events
from cuota.db.webhook.happened import Happened
from cuota.db.webhook.payout_events import BankAccountFacts, PayoutFacts

OWN_ADDRESS = UUID(int=0)
"""The receiver id of all callback addresses of single orders, in addition to the registered endpoints."""

# Adds the own address of the order of the event `n` to the receivers, if the order has one. $4 is OWN_ADDRESS.
AND_CALLBACK = """UNION ALL
        SELECT $4::uuid, d.document #>> '{merchant,statusCallbackUrl}' FROM order_details d
            WHERE d.merchant_id = $1 AND d.order_id = n.order_id
                AND d.document #>> '{merchant,statusCallbackUrl}' IS NOT NULL"""
_WAITING = "SELECT DISTINCT merchant_id FROM outbox"
_FEED = "INSERT INTO feeds (merchant_id, last_position) VALUES ($1, 0) ON CONFLICT DO NOTHING"
# The feed's row is the lock. Only the holder numbers committed events, so no reader can miss a position that is filled
# later. The lock on the endpoints waits for a change that is not committed yet, and reads the result of the change. A change that
# comes later waits for this statement, and then finds the new deliveries.
_PUBLISH = f"""
WITH mine AS (
    SELECT last_position FROM feeds WHERE merchant_id = $1 FOR UPDATE SKIP LOCKED
), registered AS (
    SELECT w.endpoint_id, w.url FROM webhook_endpoints w WHERE w.merchant_id = $1 AND w.state <> 'deleted'
    ORDER BY w.endpoint_id FOR SHARE
), taken AS (
    DELETE FROM outbox o USING mine WHERE o.merchant_id = $1 AND (o.order_id, o.sequence) IN (
        SELECT order_id, sequence FROM outbox WHERE merchant_id = $1 ORDER BY order_id, sequence LIMIT $2
    ) RETURNING o.order_id, o.sequence
), numbered AS (
    SELECT order_id, sequence, m.last_position + row_number() OVER (ORDER BY at, order_id, sequence) AS position
    FROM mine m CROSS JOIN (
        -- The clocks of two processes may differ, but the events of an order keep their sequence.
        SELECT t.order_id, t.sequence, max(e.created_at) OVER (PARTITION BY t.order_id ORDER BY t.sequence) AS at
        FROM taken t JOIN events e ON e.merchant_id = $1 AND e.order_id = t.order_id AND e.sequence = t.sequence
    ) happened
), fed AS (
    INSERT INTO feed (merchant_id, position, order_id, sequence)
    SELECT $1, position, order_id, sequence FROM numbered
), moved AS (
    UPDATE feeds SET last_position = feeds.last_position + (SELECT count(*) FROM numbered)
    FROM mine WHERE merchant_id = $1
), sent AS (
    INSERT INTO deliveries (merchant_id, order_id, sequence, receiver, position, url, host, state, try_at, created_at)
    SELECT $1, n.order_id, n.sequence, r.receiver, n.position, r.url, split_part(r.url, '/', 3), 'pending', $3, $3
    FROM numbered n CROSS JOIN LATERAL (
        SELECT w.endpoint_id AS receiver, w.url FROM registered w
        {AND_CALLBACK}
    ) r
)
SELECT (SELECT count(*) FROM mine) AS locked, (SELECT count(*) FROM numbered) AS published
"""
_HAPPENED = Nested(
    "happened",
    (
        "e.sequence",
        "e.type",
        "e.operation",
        "e.amount",
        "e.reference",
        "e.success",
        "e.message",
        "e.created_at",
    ),
    "FROM events e WHERE e.merchant_id = $1 AND e.order_id = o.order_id ORDER BY e.sequence",
)
_FACTS = f"""
SELECT {MONEY}, o.token, d.document, d.reference, p.payer, {MOVED.columns}, {_HAPPENED.columns}
FROM orders o JOIN order_details d ON d.merchant_id = $1 AND d.order_id = o.order_id
    LEFT JOIN plans p ON p.merchant_id = $1 AND p.order_id = o.order_id {MOVED.join} {_HAPPENED.join}
WHERE o.merchant_id = $1 AND o.order_id = ANY ($2::uuid[])
"""
_PAGE = """SELECT position, order_id, sequence FROM feed
    WHERE merchant_id = $1 AND position > $2 ORDER BY position LIMIT $3"""
_POSITION = "SELECT position FROM feed WHERE merchant_id = $1 AND order_id = $2 AND sequence = $3"

_LAST = "SELECT last_position FROM feeds WHERE merchant_id = $1"


@dataclass(frozen=True, slots=True)
class EventFacts:
    """The data for the bodies of an order's events. This data never changes. `chargebacks` are by the id of the dispute."""

    record: OrderRecord
    reference: str
    payer: str | None
    events: tuple[Happened, ...]
    disputes: tuple[Dispute, ...] = ()
    returns: tuple[ReturnNotice, ...] = ()
    chargebacks: Mapping[UUID, OpenedChargeback] = field(default_factory=dict)

    @property
    def has_claims(self) -> bool:
        """True if one of the events is about a dispute or a return notice."""
        return any(event.type.startswith(("dispute.", "return.")) for event in self.events)


AnyFacts = EventFacts | PayoutFacts | BankAccountFacts


@dataclass(frozen=True, slots=True)
class FeedPosition:
    """The position of an event in its merchant's feed. `order_id` is the payout's or the bank account's if the event is about one."""

    position: int
    order_id: UUID
    sequence: int


async def waiting(session: Session) -> list[UUID]:
    """Return the merchants that have events to publish."""
    return [row["merchant_id"] for row in await fetch_across(session, _WAITING)]


async def publish(session: Session, merchant_id: UUID, now: datetime, limit: int) -> int:
    """Number the committed events and add a delivery for each receiver. Return 0 if another worker is publishing."""
    row = await session.fetchrow(_PUBLISH, merchant_id, limit, now, OWN_ADDRESS)
    if row is not None and not row["locked"]:
        await session.fetchrow(_FEED, merchant_id)
        row = await session.fetchrow(_PUBLISH, merchant_id, limit, now, OWN_ADDRESS)
    return 0 if row is None else int(row["published"])


async def facts(session: Session, merchant_id: UUID, order_ids: list[UUID]) -> dict[UUID, AnyFacts]:
    """Return the data of the events of several orders, in one round trip.

    Payouts, bank accounts, disputes and return notices need further round trips.
    """
    rows = await session.fetch(_FACTS, merchant_id, order_ids)
    found: dict[UUID, AnyFacts] = {}
    for row in rows:
        facts_of_order = _facts_of(row)
        if facts_of_order.has_claims:
            facts_of_order = await _with_claims(session, merchant_id, row["order_id"], facts_of_order)
        found[row["order_id"]] = facts_of_order
    others = [each for each in order_ids if each not in found]
    if others:
        found.update(await payout_events.facts(session, merchant_id, others))
    return found


def _facts_of(row: Any) -> EventFacts:
    record = OrderRecord(order_of(row), row["token"], row["document"], movements_of(row), row["payer"])
    happened = tuple(Happened(*event) for event in _HAPPENED.of(row))
    return EventFacts(record, row["reference"], row["payer"], happened)


async def _with_claims(
    session: Session, merchant_id: UUID, order_id: UUID, without: EventFacts
) -> EventFacts:
    found = tuple(await disputes.of_order(session, merchant_id, order_id))
    charged_back = any(each.kind is DisputeKind.CHARGEBACK for each in found)
    return replace(
        without,
        disputes=found,
        returns=tuple(await disputes.returns_of_order(session, merchant_id, order_id)),
        chargebacks=await opened_chargebacks.of_order(session, merchant_id, order_id) if charged_back else {},
    )


async def page(session: Session, merchant_id: UUID, after: int, limit: int) -> list[FeedPosition]:
    """Return the events of the feed after a position."""
    return [FeedPosition(*row) for row in await session.fetch(_PAGE, merchant_id, after, limit)]


async def last_position(session: Session, merchant_id: UUID) -> int:
    """Return the last position of the feed."""
    row = await session.fetchrow(_LAST, merchant_id)
    return 0 if row is None else int(row["last_position"])


async def position(session: Session, merchant_id: UUID, order_id: UUID, sequence: int) -> int | None:
    """Return the position of an event, or None if it is not published or belongs to another merchant."""
    row = await session.fetchrow(_POSITION, merchant_id, order_id, sequence)
    return None if row is None else int(row["position"])
