"""The events of card processors: each event is stored once, claimed by a worker, and applied once."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from cuota.db.cluster.across import claim_across
from cuota.db.plan.charged_back import left
from cuota.db.session import Session

# The lease of a claim. If the worker dies, another one continues after this time. It is longer than any call to a rail.
LEASE = timedelta(seconds=60)

# An unknown order belongs to another installation with the same processor. Then nothing is stored.
_STORE = """INSERT INTO card_events (merchant_id, rail, event_id, order_id, kind, at, charge_id, card_refund_id, amount, reason,
        reference, status, card_token, card_brand, card_last4, respond_by, received_at, try_at)
    SELECT o.merchant_id, $3, $4, o.order_id, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18
    FROM orders o WHERE o.merchant_id = $1 AND o.order_id = $2
    ON CONFLICT (merchant_id, rail, event_id) DO NOTHING RETURNING 1"""
_AGAIN = """UPDATE card_events SET try_at = $4, tries = 0, applied_at = NULL
    WHERE merchant_id = $1 AND rail = $2 AND event_id = $3 RETURNING 1"""
_MERCHANTS_DUE = "SELECT DISTINCT merchant_id FROM card_events WHERE try_at <= $1"
# A claim sets try_at to the end of its lease. The UPDATE repeats the condition, because SKIP LOCKED alone claims some rows twice.
_CLAIM = """
WITH due AS MATERIALIZED (
    SELECT rail, event_id FROM card_events WHERE merchant_id = $1 AND try_at <= $2
    ORDER BY try_at, at LIMIT $4 FOR UPDATE SKIP LOCKED
)
UPDATE card_events e SET try_at = $3, tries = least(tries + 1, 1000) FROM due
    WHERE e.merchant_id = $1 AND e.rail = due.rail AND e.event_id = due.event_id AND e.try_at <= $2
RETURNING e.merchant_id, e.order_id, e.rail, e.event_id, e.kind, e.charge_id, e.card_refund_id, e.reason,
    e.amount, e.reference, e.status, e.respond_by
"""
_APPLIED = """UPDATE card_events SET applied_at = $4, try_at = NULL
    WHERE merchant_id = $1 AND rail = $2 AND event_id = $3 AND applied_at IS NULL RETURNING 1"""
_REFUND = f"""SELECT r.charge_id, {left("$1")} AS amount, r.state FROM card_refunds r
    WHERE r.merchant_id = $1 AND r.order_id = $2 AND r.card_refund_id = $3"""
# The card that pays is the plan's own, or else the last card that paid (db/plan/plans.py). A renewal
# changes nothing if a newer one of the same card is stored, because that one is applied too.
_RENEW = """
UPDATE plans p SET card_token = coalesce(p.card_token, e.card_token), card_brand = e.card_brand, card_last4 = e.card_last4
FROM card_events e WHERE e.merchant_id = $1 AND e.rail = $2 AND e.event_id = $3
    AND p.merchant_id = $1 AND p.order_id = e.order_id
    AND coalesce(p.card_token, (SELECT c.card_token FROM charges c WHERE c.merchant_id = $1 AND c.order_id = e.order_id
        AND c.state = 'succeeded' ORDER BY c.created_at DESC LIMIT 1)) = e.card_token
    AND NOT EXISTS (SELECT FROM card_events n WHERE n.merchant_id = $1 AND n.order_id = e.order_id
        AND n.kind = 'card.updated' AND n.card_token = e.card_token AND n.at > e.at)
RETURNING 1
"""


@dataclass(frozen=True, slots=True)
class NewEvent:
    """An event to store. The amount is in cents. `card_token` begins with the rail's name."""

    merchant_id: UUID
    order_id: UUID
    rail: str
    event_id: str
    kind: str
    at: datetime
    charge_id: UUID | None = None
    card_refund_id: UUID | None = None
    amount: int | None = None
    reason: str | None = None
    reference: str | None = None
    status: str | None = None
    card_token: str | None = None
    card_brand: str | None = None
    card_last4: str | None = None
    respond_by: datetime | None = None


@dataclass(frozen=True, slots=True)
class DueEvent:
    """A claimed event. The amount is in cents."""

    merchant_id: UUID
    order_id: UUID
    rail: str
    event_id: str
    kind: str
    charge_id: UUID | None
    card_refund_id: UUID | None
    reason: str | None
    amount: int | None = None
    reference: str | None = None
    status: str | None = None
    respond_by: datetime | None = None


@dataclass(frozen=True, slots=True)
class KnownRefund:
    """A stored card refund. `amount` is what went to the card, in cents: without the part that lost chargebacks returned."""

    charge_id: UUID
    amount: int
    state: str


async def store(session: Session, new: NewEvent, now: datetime, apply_at: datetime | None = None) -> bool:
    """Store an event, to be applied at `apply_at`, or at once. Return False if it is already stored, or if we do not have its order."""
    row = await session.fetchrow(
        _STORE, new.merchant_id, new.order_id, new.rail, new.event_id, new.kind, new.at, new.charge_id, new.card_refund_id,
        new.amount, new.reason, new.reference, new.status, new.card_token, new.card_brand, new.card_last4,
        new.respond_by, now, apply_at or now,
    )  # fmt: skip
    return row is not None


async def store_again(session: Session, new: NewEvent, now: datetime, apply_at: datetime) -> None:
    """Store an event, to be applied at `apply_at`. If it is already stored, it is applied at that time, even if it was applied before."""
    if not await store(session, new, now, apply_at):
        await session.fetchrow(_AGAIN, new.merchant_id, new.rail, new.event_id, apply_at)


async def claim(session: Session, now: datetime, limit: int) -> list[DueEvent]:
    """Claim at most `limit` events that are not applied yet. The order of the merchants is random."""
    return [DueEvent(*row) for row in await claim_across(session, _MERCHANTS_DUE, _CLAIM, now, LEASE, limit)]


async def applied(session: Session, due: DueEvent, now: datetime) -> bool:
    """Record that an event was applied. Return False if another worker has already recorded it."""
    return await session.fetchrow(_APPLIED, due.merchant_id, due.rail, due.event_id, now) is not None


async def refund_of(session: Session, due: DueEvent) -> KnownRefund | None:
    """Return the card refund that an event is about, or None."""
    row = await session.fetchrow(_REFUND, due.merchant_id, due.order_id, due.card_refund_id)
    return None if row is None else KnownRefund(*row)


async def renew_card(session: Session, due: DueEvent) -> bool:
    """Give the plan the brand and last four digits of its renewed card. Return False if another card pays the plan now."""
    return await session.fetchrow(_RENEW, due.merchant_id, due.rail, due.event_id) is not None
