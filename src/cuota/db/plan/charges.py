"""Charges without an answer yet, and refunds to cards."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from uuid import UUID

from cuota.core.plan.charge import Charge, Origin
from cuota.db.cluster.across import claim_across
from cuota.db.session import Session

_PENDING = """SELECT c.charge_id, c.installment, c.amount, o.currency, c.card_token, c.card_brand, c.card_last4, c.origin,
    p.first_day, p.time_zone, c.created_at, p.card_hash
    FROM charges c JOIN plans p ON p.merchant_id = $1 AND p.order_id = c.order_id
        JOIN orders o ON o.merchant_id = $1 AND o.order_id = c.order_id
    WHERE c.merchant_id = $1 AND c.order_id = $2 AND c.state = 'pending'"""
_MERCHANTS_DUE = "SELECT DISTINCT merchant_id FROM card_refunds WHERE try_at <= $1"
# A claim sets try_at to the end of its lease. The UPDATE repeats the condition, because SKIP LOCKED alone claims some rows twice.
_CLAIM = """
UPDATE card_refunds r SET try_at = $3 FROM (
    SELECT order_id, card_refund_id FROM card_refunds WHERE merchant_id = $1 AND try_at <= $2
    ORDER BY try_at LIMIT $4 FOR UPDATE SKIP LOCKED
) due, charges c WHERE r.merchant_id = $1 AND r.order_id = due.order_id AND r.card_refund_id = due.card_refund_id
    AND r.try_at <= $2 AND c.merchant_id = $1 AND c.order_id = r.order_id AND c.charge_id = r.charge_id
RETURNING r.merchant_id, r.order_id, r.card_refund_id, r.charge_id, c.card_token, r.amount, r.tries
"""
_STILL_PENDING = """SELECT 1 FROM card_refunds
    WHERE merchant_id = $1 AND order_id = $2 AND card_refund_id = $3 AND state = 'pending'"""
_AGAIN = """UPDATE card_refunds SET try_at = $4, tries = least(tries + 1, 1000), reason = $5
    WHERE merchant_id = $1 AND order_id = $2 AND card_refund_id = $3 AND state = 'pending'"""

_REFERENCE = (
    "UPDATE charges SET network_reference = $4 WHERE merchant_id = $1 AND order_id = $2 AND charge_id = $3"
)

_FAILED = """SELECT r.merchant_id, r.order_id, r.card_refund_id, r.amount, r.reason, r.settled_at, c.card_brand, c.card_last4
    FROM card_refunds r JOIN charges c USING (merchant_id, order_id, charge_id)
    WHERE r.state = 'failed' ORDER BY r.created_at DESC LIMIT $1"""

# The lease of a claim. Only one worker calls the rail for a refund; if the worker dies, another one retries after this time.
# flows/order/return_money.py asserts that a call ends sooner.
LEASE = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class PendingCharge:
    """A charge without a final answer yet, with the plan's first day, the consumer's time zone, and when it was recorded."""

    charge: Charge
    first_day: date
    zone: str
    asked_at: datetime


@dataclass(frozen=True, slots=True)
class DueRefund:
    """A claimed card refund, with the token of the card that paid. The amount is in cents."""

    merchant_id: UUID
    order_id: UUID
    card_refund_id: UUID
    charge_id: UUID
    card_token: str
    amount: int
    tries: int


@dataclass(frozen=True, slots=True)
class FailedRefund:
    """A refund that a card refused, so that the consumer is still owed the money. The amount is in cents."""

    merchant_id: UUID
    order_id: UUID
    card_refund_id: UUID
    amount: int
    reason: str | None
    failed_at: datetime
    card_brand: str
    card_last4: str


async def pending(session: Session, merchant_id: UUID, order_id: UUID) -> PendingCharge | None:
    """Return the charge that is in progress for an order, or None."""
    row = await session.fetchrow(_PENDING, merchant_id, order_id)
    if row is None:
        return None
    charge_id, installment, amount, currency, token, brand, last4, origin, first_day, zone, at, card = row
    charge = Charge(charge_id, installment, amount, currency, token, brand, last4, Origin(origin), card)
    return PendingCharge(charge, first_day, zone, at)


async def keep_reference(
    session: Session, merchant_id: UUID, order_id: UUID, charge_id: UUID, reference: str
) -> None:
    """Store the card network's identifier of a charge."""
    await session.fetchrow(_REFERENCE, merchant_id, order_id, charge_id, reference)


async def claim_refunds(session: Session, now: datetime, limit: int) -> list[DueRefund]:
    """Claim at most `limit` card refunds that are due. The order of the merchants is random."""
    return [DueRefund(*row) for row in await claim_across(session, _MERCHANTS_DUE, _CLAIM, now, LEASE, limit)]


async def still_pending(session: Session, due: DueRefund) -> bool:
    """Return whether the rail's answer is not recorded yet."""
    row = await session.fetchrow(_STILL_PENDING, due.merchant_id, due.order_id, due.card_refund_id)
    return row is not None


async def try_again(session: Session, due: DueRefund, at: datetime, reason: str) -> None:
    """Record that the rail did not answer. The refund is retried at `at`."""
    await session.fetchrow(_AGAIN, due.merchant_id, due.order_id, due.card_refund_id, at, reason)


async def failed_refunds(session: Session, limit: int) -> list[FailedRefund]:
    """Return the failed refunds of all merchants, newest first, for operators."""
    return [FailedRefund(*row) for row in await session.fetch(_FAILED, limit)]
