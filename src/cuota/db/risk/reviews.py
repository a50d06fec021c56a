"""Reads reviews: the orders that risk referred to a person. An outcome writes them, together with the order."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from cuota.core.order.order import Order
from cuota.core.risk.decision import Decision
from cuota.core.risk.review import Review, ReviewState
from cuota.db.order.columns import MONEY, order_of
from cuota.db.pool import Row
from cuota.db.position import BEHIND_ALL, Position
from cuota.db.risk.decisions import Became, Made
from cuota.db.session import Session

BATCH = 500
_REFERRAL = """r.merchant_id, r.order_id, r.consumer_id, r.policy_version, r.inputs, r.reasons, r.score, r.credit_limit,
    r.referred_at, r.answer_by"""
_ENDED = "r.state, r.answered_at, r.person_id, r.answerer, r.reason"
# True if the stored inputs are unchanged.
INTACT = "r.inputs_hash = sha256(convert_to(r.inputs::text, 'UTF8'))"
_INTACT = f"{INTACT} AS intact"
_READ = f"""SELECT {MONEY}, {_REFERRAL}, r.time_zone, {_ENDED}, {_INTACT}, m.name AS merchant, d.reference
FROM reviews r JOIN orders o ON o.merchant_id = $1 AND o.order_id = r.order_id JOIN merchants m ON m.merchant_id = $1
    JOIN order_details d ON d.merchant_id = $1 AND d.order_id = r.order_id
WHERE r.merchant_id = $1 AND r.order_id = $2"""
_SHOWN = f"{_REFERRAL}, {_ENDED}, m.name AS merchant, d.reference, o.amount, o.currency"
_ALL = """FROM reviews r JOIN orders o ON o.merchant_id = r.merchant_id AND o.order_id = r.order_id
    JOIN order_details d ON d.merchant_id = r.merchant_id AND d.order_id = r.order_id
    JOIN merchants m ON m.merchant_id = r.merchant_id"""
# $3 and $4 are the last row of the page before. The index reviews_waiting holds only waiting reviews.
_WAITING = f"""SELECT {_SHOWN} {_ALL} WHERE r.state = 'waiting' AND ($1::uuid IS NULL OR r.merchant_id = $1)
    AND ($3::timestamptz IS NULL OR (r.answer_by, r.order_id) > ($3, $4::uuid)) ORDER BY r.answer_by, r.order_id LIMIT $2"""
_BEFORE = "r.state = $1 AND (r.referred_at, r.order_id) < ($3, $4)"
_ANSWERED = f"SELECT {_SHOWN} {_ALL} WHERE {_BEFORE} ORDER BY r.referred_at DESC, r.order_id DESC LIMIT $2"
_ANSWERED_OF_MERCHANT = f"""SELECT {_SHOWN} FROM reviews r JOIN orders o ON o.merchant_id = $5 AND o.order_id = r.order_id
    JOIN order_details d ON d.merchant_id = $5 AND d.order_id = r.order_id JOIN merchants m ON m.merchant_id = $5 WHERE r.merchant_id = $5 AND {_BEFORE}
    ORDER BY r.referred_at DESC, r.order_id DESC LIMIT $2"""
_COUNT = """SELECT count(*) AS waiting, count(*) FILTER (WHERE answer_by <= $1) AS running_out, min(answer_by) AS first
    FROM reviews WHERE state = 'waiting'"""
_RANGE = f"""SELECT {_REFERRAL}, {_INTACT}, o.status, o.amount, o.currency,
    EXISTS (SELECT 1 FROM decisions d WHERE d.merchant_id = $1 AND d.order_id = r.order_id) AS decided
FROM reviews r JOIN orders o ON o.merchant_id = $1 AND o.order_id = r.order_id
WHERE r.merchant_id = $1 AND r.referred_at >= $2 AND r.referred_at < $3 AND (r.referred_at, r.order_id) > ($4, $5)
ORDER BY r.referred_at, r.order_id LIMIT {BATCH}"""
_FIRST = UUID(int=0)
# A review with less time left than this is counted as running out.
RUNNING_OUT = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class EndedReview:
    """The state of a review, and who ended it, when and why. While it waits, the other values are empty."""

    state: ReviewState
    answered_at: datetime | None
    person_id: UUID | None
    answerer: str
    reason: str


@dataclass(frozen=True, slots=True)
class ReviewedOrder:
    """An order with its review. `made` is the referral as a stored decision, to repeat it."""

    order: Order
    review: Review
    ended: EndedReview
    made: Made
    merchant: str
    reference: str


@dataclass(frozen=True, slots=True)
class ListedReview:
    """A review in the operator's list. The amount is in cents."""

    merchant_id: UUID
    merchant: str
    order_id: UUID
    reference: str
    amount: int
    currency: str
    score: int
    reasons: tuple[str, ...]
    referred_at: datetime
    answer_by: datetime
    ended: EndedReview


@dataclass(frozen=True, slots=True)
class WaitingReviews:
    """How many reviews of all merchants wait, how many of these run out soon, and the earliest deadline."""

    waiting: int
    running_out: int
    first: datetime | None


async def read(session: Session, merchant_id: UUID, order_id: UUID) -> ReviewedOrder | None:
    """Return an order with its review. None if there is no such order, or it was never referred."""
    row = await session.fetchrow(_READ, merchant_id, order_id)
    if row is None:
        return None
    made = _made(row)
    decision = Decision(
        approved=False,
        reasons=made.reasons,
        policy_version=made.policy_version,
        inputs=made.inputs,
        score=row["score"],
        limit=row["credit_limit"],
        referred=True,
    )
    review = Review(row["consumer_id"], decision, row["time_zone"], row["referred_at"], row["answer_by"])
    return ReviewedOrder(order_of(row), review, _ended(row), made, row["merchant"], row["reference"])


async def waiting(
    session: Session, merchant_id: UUID | None, limit: int, after: Position | None = None
) -> list[ListedReview]:
    """Return the reviews that wait, of one merchant or of all, the earliest deadline first."""
    rows = await session.fetch(_WAITING, merchant_id, limit, *(after or (None, None)))
    return [_listed(row) for row in rows]


async def ended(
    session: Session, state: ReviewState, merchant_id: UUID | None, limit: int, after: Position | None = None
) -> list[ListedReview]:
    """Return the reviews that ended in this state, of one merchant or of all, the newest first."""
    place = (state, limit, *(after or BEHIND_ALL))
    if merchant_id is None:
        rows = await session.fetch(_ANSWERED, *place)
    else:
        rows = await session.fetch(_ANSWERED_OF_MERCHANT, *place, merchant_id)
    return [_listed(row) for row in rows]


async def count(session: Session, now: datetime) -> WaitingReviews:
    """Count the reviews that wait."""
    row = await session.fetchrow(_COUNT, now + RUNNING_OUT)
    assert row is not None, "an aggregate returns one row"
    return WaitingReviews(row["waiting"], row["running_out"], row["first"])


async def between(
    session: Session, merchant_id: UUID, since: datetime, until: datetime
) -> AsyncIterator[tuple[Became, bool]]:
    """Yield a merchant's referrals from `since` (included) to `until` (excluded), and whether a decision followed."""
    after: tuple[datetime, UUID] = since, _FIRST
    while rows := await session.fetch(_RANGE, merchant_id, since, until, *after):
        for row in rows:
            became = Became(_made(row), row["status"], row["amount"], row["currency"], overdue=0, waits=False)
            yield became, row["decided"]
        after = rows[-1]["referred_at"], rows[-1]["order_id"]


def _made(row: Row) -> Made:
    # A referral has no id of its own: an order has one at most.
    return Made(
        row["merchant_id"], row["order_id"], row["referred_at"], False, tuple(row["reasons"]), row["policy_version"],
        json.loads(row["inputs"]), row["order_id"], row["consumer_id"], row["score"], row["credit_limit"], row["intact"],
        referred=True,
    )  # fmt: skip


def _ended(row: Row) -> EndedReview:
    return EndedReview(
        ReviewState(row["state"]), row["answered_at"], row["person_id"], row["answerer"], row["reason"]
    )


def _listed(row: Row) -> ListedReview:
    return ListedReview(
        row["merchant_id"], row["merchant"], row["order_id"], row["reference"], row["amount"], row["currency"], row["score"],
        tuple(row["reasons"]), row["referred_at"], row["answer_by"], _ended(row),
    )  # fmt: skip
