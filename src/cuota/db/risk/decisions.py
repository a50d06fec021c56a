"""Reads stored decisions, for explanations, replays and policy simulations."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from cuota.db.cluster.living import find_one
from cuota.db.pool import Pool, Row
from cuota.db.session import Session

BATCH = 500
# True if the stored inputs are unchanged. Early releases stored neither a score nor a hash.
INTACT = "coalesce(d.inputs_hash = sha256(convert_to(d.inputs::text, 'UTF8')), d.score IS NULL)"
_MADE = f"""d.merchant_id, d.order_id, d.decided_at, d.approved, d.reasons, d.policy_version, d.inputs, d.decision_id,
    d.consumer_id, d.score, d.credit_limit, {INTACT} AS intact"""
_OF_ORDER = (
    f"SELECT {_MADE} FROM decisions d WHERE d.merchant_id = $1 AND d.order_id = $2 ORDER BY d.decided_at"
)
_BY_ID = f"SELECT {_MADE} FROM decisions d WHERE d.decision_id = $1"
# `overdue` is the amount of the payments whose charges failed.
_RANGE = f"""
SELECT {_MADE}, o.status, o.amount, o.currency, (SELECT coalesce(sum(i.amount + i.fee), 0) FROM installments i
    WHERE i.merchant_id = $1 AND i.order_id = d.order_id AND i.charge_id IS NULL
    AND i.failures > 0)::bigint AS overdue,
    EXISTS (SELECT FROM installments i WHERE i.merchant_id = $1 AND i.order_id = d.order_id AND i.charge_id IS NULL
        AND i.amount + i.fee > 0 AND i.failures = 0) AS waits
FROM decisions d JOIN orders o ON o.merchant_id = $1 AND o.order_id = d.order_id
WHERE d.merchant_id = $1 AND d.decided_at >= $2 AND d.decided_at < $3 AND (d.decided_at, d.order_id) > ($4, $5)
ORDER BY d.decided_at, d.order_id LIMIT {BATCH}
"""
_WHOSE = """SELECT m.merchant_id FROM merchants m JOIN orders o ON o.merchant_id = m.merchant_id AND o.order_id = $1"""
_LETTER = f"""SELECT {_MADE} FROM decisions d WHERE d.merchant_id = $1 AND d.order_id = $2 AND d.consumer_id = $3
    AND NOT d.approved ORDER BY d.decided_at DESC LIMIT 1"""
_FIRST = UUID(int=0)


@dataclass(frozen=True, slots=True)
class Made:
    """One stored decision. `consumer_id`, `score` and `limit` (cents) are None if an early release did not store them.

    `intact` is False if the stored inputs were altered later. With `referred`, this is a referral (db/risk/reviews.py), whose
    `decision_id` is the id of its order.
    """

    merchant_id: UUID
    order_id: UUID
    decided_at: datetime
    approved: bool
    reasons: tuple[str, ...]
    policy_version: str
    inputs: dict[str, Any]
    decision_id: UUID
    consumer_id: UUID | None
    score: int | None
    limit: int | None
    intact: bool
    referred: bool = False

    @property
    def reviewed(self) -> bool:
        """True if a person has looked at the order for this decision, or was asked to."""
        return self.referred or self.inputs.get("review") in {"approved", "declined"}

    @property
    def outcome(self) -> str:
        """`approved`, `declined` or `referred`."""
        if self.referred:
            return "referred"
        return "approved" if self.approved else "declined"


@dataclass(frozen=True, slots=True)
class Became:
    """A decision and the outcome of its order. `overdue` is the amount that is due and unpaid now. Amounts are cents.

    `waits`: a payment is not due yet.
    """

    made: Made
    status: str
    amount: int
    currency: str
    overdue: int
    waits: bool


def _made(row: Row) -> Made:
    return Made(
        row["merchant_id"], row["order_id"], row["decided_at"], row["approved"], tuple(row["reasons"]),
        row["policy_version"], json.loads(row["inputs"]), row["decision_id"], row["consumer_id"], row["score"],
        row["credit_limit"], row["intact"],
    )  # fmt: skip


async def read(pool: Pool, decision_id: UUID) -> Made | None:
    """Return the decision with this id, of any merchant. Only operators may see it."""
    row = await find_one(pool, _BY_ID, decision_id)
    return None if row is None else _made(row)


async def read_of_order(session: Session, merchant_id: UUID, order_id: UUID) -> list[Made]:
    """Return every decision about an order, earliest first. Each card that the consumer tried has its own decision."""
    return [_made(row) for row in await session.fetch(_OF_ORDER, merchant_id, order_id)]


async def read_declined(
    session: Session, merchant_id: UUID, order_id: UUID, consumer_id: UUID
) -> Made | None:
    """Return the decision that declined an order, only if it is about this consumer."""
    row = await session.fetchrow(_LETTER, merchant_id, order_id, consumer_id)
    return None if row is None else _made(row)


async def whose(pool: Pool, order_id: UUID) -> UUID | None:
    """Return the merchant of an order, for commands that get only the order's id."""
    row = await find_one(pool, _WHOSE, order_id)
    return None if row is None else row["merchant_id"]


async def between(
    session: Session, merchant_id: UUID, since: datetime, until: datetime
) -> AsyncIterator[Became]:
    """Yield a merchant's decisions from `since` (included) to `until` (excluded), in the order of time."""
    after: tuple[datetime, UUID] = since, _FIRST
    while rows := await session.fetch(_RANGE, merchant_id, since, until, *after):
        for row in rows:
            yield Became(
                _made(row), row["status"], row["amount"], row["currency"], row["overdue"], row["waits"]
            )
        after = rows[-1]["decided_at"], rows[-1]["order_id"]
