"""Charges without an answer yet, and refunds to cards."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from uuid import UUID

from cuota.core.dispute.dispute import DisputeReason
from cuota.core.order.job import CardRefund
from cuota.core.plan.charge import NEVER_SENT, Charge, Origin
from cuota.db.cluster.across import claim_across
from cuota.db.cluster.living import find_one
from cuota.db.nested import Nested
from cuota.db.plan.charged_back import BY_BANK, left, returned_by_bank
from cuota.db.plan.charged_back import borne as borne_by
from cuota.db.plan.plans import CARD_JOIN, SAME_CARD
from cuota.db.pool import Pool, Row
from cuota.db.session import Session

_CHARGE = """SELECT c.charge_id, c.installment, c.amount, o.currency, c.card_token, c.card_brand, c.card_last4, c.origin,
    p.first_day, p.time_zone, c.created_at, p.card_hash, EXISTS (SELECT FROM disputes d
        WHERE d.merchant_id = $1 AND d.order_id = $2 AND d.closed_at > c.created_at) AS disputed
    FROM charges c JOIN plans p ON p.merchant_id = $1 AND p.order_id = c.order_id
        JOIN orders o ON o.merchant_id = $1 AND o.order_id = c.order_id
    WHERE c.merchant_id = $1 AND c.order_id = $2"""
_PENDING = f"{_CHARGE} AND c.state = 'pending'"
_NEVER_SENT = f"{_CHARGE} AND c.charge_id = $3 AND c.reason = '{NEVER_SENT}'"
_MERCHANTS_DUE = "SELECT DISTINCT merchant_id FROM card_refunds WHERE try_at <= $1"
# The reason of a refund that waits for the end of a chargeback. No rail was asked for such a refund.
WAITS = "a chargeback of this payment is open"
_UNASKED = "(r.try_at = r.created_at OR r.unasked_until = r.try_at)"
# A claim sets try_at to the end of its lease. `due` has locked its rows, so the UPDATE finds them again by their ctid: without the
# planner's statistics, it would read all card refunds of the merchant. LIMIT makes the plan look up the charges one by one.
_CLAIM = f"""
WITH due AS MATERIALIZED (
    SELECT ctid AS spot, order_id, charge_id FROM card_refunds WHERE merchant_id = $1 AND try_at <= $2
    ORDER BY try_at LIMIT $4 FOR UPDATE SKIP LOCKED
)
UPDATE card_refunds r SET try_at = $3, unasked_until = CASE WHEN {_UNASKED} THEN $3::timestamptz END
    FROM due CROSS JOIN LATERAL (SELECT c.card_token FROM charges c
        WHERE c.merchant_id = $1 AND c.order_id = due.order_id AND c.charge_id = due.charge_id LIMIT 1) c
    WHERE r.merchant_id = $1 AND r.ctid = due.spot AND r.try_at <= $2
RETURNING r.merchant_id, r.order_id, r.card_refund_id, r.charge_id, c.card_token, {left("$1")} AS amount, r.tries,
    r.unasked_until IS NOT NULL AS unasked, r.try_at
"""
_STILL_PENDING = f"""SELECT {left("$1")} AS amount FROM card_refunds r
    WHERE r.merchant_id = $1 AND r.order_id = $2 AND r.card_refund_id = $3 AND r.state = 'pending'"""
_BORNE = f"SELECT {borne_by('$3')} AS borne"
_DISPUTED = """EXISTS (SELECT FROM disputes d WHERE d.merchant_id = $1 AND d.order_id = $2 AND d.charge_id = r.charge_id
        AND d.kind = 'chargeback' AND d.status <> 'closed')"""
# While a chargeback is open, no refund of its charge becomes one that a rail may know. $4 is the lease of the caller's claim, $5 the amount
# that was left then: a chargeback may have returned a part since.
_ASK = f"""UPDATE card_refunds r SET unasked_until = NULL WHERE r.merchant_id = $1 AND r.order_id = $2 AND r.card_refund_id = $3
    AND r.state = 'pending' AND r.try_at = $4 AND {left("$1")} = $5 AND NOT {_DISPUTED} AND {borne_by("r.charge_id")} <= 0 RETURNING 1"""
_STANDING = f"""SELECT {_DISPUTED} AS disputed, {borne_by("r.charge_id")} AS borne
    FROM card_refunds r WHERE r.merchant_id = $1 AND r.order_id = $2 AND r.card_refund_id = $3 AND r.state = 'pending'"""
_WAIT = f"""UPDATE card_refunds SET try_at = $5, unasked_until = $5, reason = '{WAITS}' WHERE merchant_id = $1 AND order_id = $2
    AND card_refund_id = $3 AND state = 'pending' AND try_at = $4 AND unasked_until = $4"""
_NOT_ON_CARD = Nested(
    "not_on_card",
    ("r.card_refund_id", "r.charge_id", "r.amount", "r.state = 'paid_otherwise'"),
    f"""FROM card_refunds r WHERE r.merchant_id = $1 AND r.order_id = o.order_id
        AND (r.state IN ('failed', 'paid_otherwise') OR (r.state = 'pending' AND {_UNASKED}))
        ORDER BY r.created_at, r.card_refund_id""",
)
_UNSENT = f"""SELECT {_NOT_ON_CARD.columns}, {BY_BANK.columns} FROM orders o {_NOT_ON_CARD.join} {BY_BANK.join}
    WHERE o.merchant_id = $1 AND o.order_id = $2"""
_AGAIN = """UPDATE card_refunds SET try_at = $5, tries = least(tries + 1, 1000), reason = $6
    WHERE merchant_id = $1 AND order_id = $2 AND card_refund_id = $3 AND state = 'pending' AND try_at = $4"""

_REFERENCE = (
    "UPDATE charges SET network_reference = $4 WHERE merchant_id = $1 AND order_id = $2 AND charge_id = $3"
)

# The hash of the card that pays now goes to the plan's charges before another card replaces it.
_KEEP_CARD = f"""UPDATE charges c SET card_hash = p.card_hash FROM plans p {CARD_JOIN} WHERE p.merchant_id = $1 AND p.order_id = $2
    AND c.merchant_id = $1 AND c.order_id = $2 AND c.card_token = coalesce(p.card_token, k.card_token)"""
# The hash of the card of the charge `c`. The plan still has it if the card pays now.
_CARD_HASH = f"coalesce(c.card_hash, CASE WHEN {SAME_CARD} THEN p.card_hash END)"
_CHARGES = f"charges c JOIN plans p ON p.merchant_id = $1 AND p.order_id = $2 {CARD_JOIN}"
_LOST = """EXISTS (SELECT FROM disputes d WHERE d.merchant_id = $1 AND d.order_id = $2 AND d.charge_id = c.charge_id
        AND d.kind = 'chargeback' AND d.outcome = 'lost'"""
_STOLEN = f"""SELECT {_CARD_HASH} AS card_hash FROM {_CHARGES}
    WHERE c.merchant_id = $1 AND c.order_id = $2 AND c.charge_id = $3 AND {_LOST} AND d.reason = '{DisputeReason.NOT_MINE}')"""
_LOST_HERE = f"""SELECT 1 FROM {_CHARGES}
    WHERE c.merchant_id = $1 AND c.order_id = $2 AND {_CARD_HASH} = $3 AND {_LOST}) LIMIT 1"""

_FAILED = f"""SELECT r.merchant_id, r.order_id, r.card_refund_id, {left("r.merchant_id")} AS amount, r.reason, r.settled_at, c.card_brand, c.card_last4
    FROM card_refunds r JOIN charges c USING (merchant_id, order_id, charge_id)
    WHERE r.state = 'failed' ORDER BY r.created_at DESC LIMIT $1"""
_FAILED_SUM = f"""SELECT count(*) AS refunds, coalesce(sum({left("r.merchant_id")}), 0)::bigint AS amount FROM card_refunds r
    WHERE r.state = 'failed'"""

_PLACE = "SELECT merchant_id, order_id FROM card_refunds WHERE card_refund_id = $1"
_SETTLED = f"""SELECT r.state, r.reason, {left("$1")} AS left_over, {_DISPUTED} AS disputed FROM card_refunds r
    WHERE r.merchant_id = $1 AND r.order_id = $2 AND r.card_refund_id = $3"""

# The lease of a claim. Only one worker calls the rail for a refund; if the worker dies, another one retries after this time.
# flows/order/return_money.py asserts that a call ends sooner.
LEASE = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class PendingCharge:
    """A charge without a final answer yet, with the plan's first day, the consumer's time zone, and when it was recorded.

    `disputed`: a dispute about the order closed after the charge was recorded.
    """

    charge: Charge
    first_day: date
    zone: str
    asked_at: datetime
    disputed: bool


@dataclass(frozen=True, slots=True)
class DueRefund:
    """A claimed card refund, with the token of the card that paid. `amount` is what is left to refund, in cents.

    `unasked`: surely no rail was asked yet. `lease` is the end of the claim.
    """

    merchant_id: UUID
    order_id: UUID
    card_refund_id: UUID
    charge_id: UUID
    card_token: str
    amount: int
    tries: int
    unasked: bool
    lease: datetime


@dataclass(frozen=True, slots=True)
class RefundStanding:
    """Whether a chargeback of the refund's charge is open, and the cents that Cuota lost in chargebacks of this charge."""

    disputed: bool
    borne: int


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


@dataclass(frozen=True, slots=True)
class SettledRefund:
    """A card refund. `left` are the cents that no lost chargeback returned. `disputed`: a chargeback of its charge is open."""

    state: str
    reason: str | None
    left: int
    disputed: bool


async def pending(session: Session, merchant_id: UUID, order_id: UUID) -> PendingCharge | None:
    """Return the charge that is in progress for an order, or None."""
    row = await session.fetchrow(_PENDING, merchant_id, order_id)
    return None if row is None else _charge_of(row)


async def never_sent(
    session: Session, merchant_id: UUID, order_id: UUID, charge_id: UUID
) -> PendingCharge | None:
    """Return a charge that was ended because it never reached the rail. None if this charge ended otherwise, or not yet."""
    row = await session.fetchrow(_NEVER_SENT, merchant_id, order_id, charge_id)
    return None if row is None else _charge_of(row)


def _charge_of(row: Row) -> PendingCharge:
    charge_id, installment, amount, currency, token, brand, last4, origin, *rest = row
    first_day, zone, at, card, disputed = rest
    charge = Charge(charge_id, installment, amount, currency, token, brand, last4, Origin(origin), card)
    return PendingCharge(charge, first_day, zone, at, disputed)


async def keep_reference(
    session: Session, merchant_id: UUID, order_id: UUID, charge_id: UUID, reference: str
) -> None:
    """Store the card network's identifier of a charge."""
    await session.fetchrow(_REFERENCE, merchant_id, order_id, charge_id, reference)


async def keep_card_hash(session: Session, merchant_id: UUID, order_id: UUID) -> None:
    """Store the hash of the card that pays now with its charges, because the plan is about to forget it."""
    await session.fetchrow(_KEEP_CARD, merchant_id, order_id)


async def stolen_card(session: Session, merchant_id: UUID, order_id: UUID, charge_id: UUID) -> bytes | None:
    """Return the hash of a charge's card if the hash is known and a chargeback was lost because somebody else used the card."""
    row = await session.fetchrow(_STOLEN, merchant_id, order_id, charge_id)
    return None if row is None else row["card_hash"]


async def has_lost(session: Session, merchant_id: UUID, order_id: UUID, card_hash: bytes | None) -> bool:
    """Return whether this card lost a chargeback of one of the plan's charges."""
    return await session.fetchrow(_LOST_HERE, merchant_id, order_id, card_hash) is not None


async def claim_refunds(session: Session, now: datetime, limit: int) -> list[DueRefund]:
    """Claim at most `limit` card refunds that are due. The order of the merchants is random."""
    return [DueRefund(*row) for row in await claim_across(session, _MERCHANTS_DUE, _CLAIM, now, LEASE, limit)]


async def still_pending(session: Session, due: DueRefund) -> CardRefund | None:
    """Return the refund, with the amount that is left, while the rail's answer is not recorded yet."""
    row = await session.fetchrow(_STILL_PENDING, due.merchant_id, due.order_id, due.card_refund_id)
    return None if row is None else CardRefund(due.card_refund_id, due.charge_id, row["amount"])


async def ask(session: Session, due: DueRefund) -> bool:
    """Record that a rail is asked for a claimed refund from now on.

    Return False if that is not allowed: a chargeback of the charge is open or has returned the money or a part of it, or the refund is
    settled or claimed by another worker.
    """
    ids = (due.merchant_id, due.order_id, due.card_refund_id)
    return await session.fetchrow(_ASK, *ids, due.lease, due.amount) is not None


async def standing(session: Session, due: DueRefund) -> RefundStanding | None:
    """Return what chargebacks say about a claimed refund. None if the refund is settled."""
    row = await session.fetchrow(_STANDING, due.merchant_id, due.order_id, due.card_refund_id)
    return None if row is None else RefundStanding(row["disputed"], row["borne"])


async def wait(session: Session, due: DueRefund, at: datetime) -> None:
    """Let a refund for which no rail was asked wait until `at`, because a chargeback of its charge is open."""
    await session.fetchrow(_WAIT, due.merchant_id, due.order_id, due.card_refund_id, due.lease, at)


async def unsent(
    session: Session, merchant_id: UUID, order_id: UUID
) -> tuple[tuple[CardRefund, ...], tuple[CardRefund, ...]]:
    """Return the refunds of an order that are surely not on the card: they failed, or no rail was asked for them.

    Apart from these, return the refunds that failed and that the operator then paid in another way. The amounts are what is left to
    refund, or was.
    """
    row = await session.fetchrow(_UNSENT, merchant_id, order_id)
    if row is None:
        return (), ()
    by_bank = returned_by_bank(row)
    refunds = [
        (CardRefund(card_refund_id, charge_id, amount - by_bank[card_refund_id]), paid)
        for card_refund_id, charge_id, amount, paid in _NOT_ON_CARD.of(row)
    ]
    return tuple(each for each, paid in refunds if not paid), tuple(each for each, paid in refunds if paid)


async def borne(session: Session, merchant_id: UUID, order_id: UUID, charge_id: UUID) -> int:
    """Return the cents that Cuota lost in chargebacks of a charge, without the refunds that these chargebacks returned."""
    row = await session.fetchrow(_BORNE, merchant_id, order_id, charge_id)
    return 0 if row is None else int(row["borne"])


async def try_again(session: Session, due: DueRefund, at: datetime, reason: str) -> None:
    """Record that the rail did not answer. The refund is retried at `at`."""
    await session.fetchrow(_AGAIN, due.merchant_id, due.order_id, due.card_refund_id, due.lease, at, reason)


async def failed_refunds(session: Session, limit: int) -> list[FailedRefund]:
    """Return the failed refunds of all merchants, newest first, for operators."""
    return [FailedRefund(*row) for row in await session.fetch(_FAILED, limit)]


async def sum_failed(session: Session) -> tuple[int, int]:
    """Return how many refunds of all merchants failed, and their sum in cents, for operators."""
    row = await session.fetchrow(_FAILED_SUM)
    return (row["refunds"], row["amount"]) if row else (0, 0)


async def place_of_refund(pool: Pool, card_refund_id: UUID) -> tuple[UUID, UUID] | None:
    """Return the merchant and the order of a card refund, for operators."""
    row = await find_one(pool, _PLACE, card_refund_id)
    return None if row is None else (row["merchant_id"], row["order_id"])


async def settled_refund(
    session: Session, merchant_id: UUID, order_id: UUID, card_refund_id: UUID
) -> SettledRefund | None:
    """Return the state of a card refund, and what is left of it."""
    row = await session.fetchrow(_SETTLED, merchant_id, order_id, card_refund_id)
    return None if row is None else SettledRefund(*row)
