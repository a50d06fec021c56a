"""Answers a review: a person approves or declines the order, or the job declines it because nobody answered in time.

Two reviewers, the job, the end of the checkout, and a consumer who cancels may act at the same moment. The order's version lets
one of them save, and the others see its result.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID
from zoneinfo import ZoneInfo

from cuota.core.checkout.referral import Answered, approve_review, decline_review
from cuota.core.expected_failure import ExpectedFailure
from cuota.core.order.order import Order
from cuota.core.order.outcome import Outcome
from cuota.core.plan.notice import Notice, NoticeKind
from cuota.core.reason import printable
from cuota.core.refusal import Code, Refused
from cuota.core.risk.review import Review, ReviewAnswer, ReviewState
from cuota.db.risk import decisions, reviews
from cuota.db.risk.reviews import EndedReview, ReviewedOrder
from cuota.flows.context import Context
from cuota.flows.settle import settle

FIRST_INSTALLMENT = 1
log = logging.getLogger("cuota.risk")
_HOW = {
    ReviewState.UNANSWERED: "The time for an answer is over, so the order is declined",
    ReviewState.CLOSED: "The consumer canceled the order",
}


class NoReview(ExpectedFailure):
    """The order was never referred to a person."""


class ReviewEnded(ExpectedFailure):
    """The review was already answered, or its order has ended. The text describes the result."""


@dataclass(frozen=True, slots=True)
class Reviewer:
    """The reviewer: the person's id (None for a command), and the name with the e-mail address or the command's user."""

    person_id: UUID | None
    words: str


async def approve(context: Context, merchant_id: UUID, order_id: UUID, by: Reviewer, reason: str) -> Order:
    """Let the consumer complete the order, and text the link. Raises NoReview or ReviewEnded.

    Risk decides once more when the consumer confirms: the limits may still decline the order.
    """
    answer = ReviewAnswer(ReviewState.APPROVED, by.person_id, by.words, printable(reason))

    def decide(found: ReviewedOrder) -> Outcome:
        now = context.now()
        notice = _notice(context, NoticeKind.REVIEW_APPROVED, found.review, found.order, now)
        return approve_review(found.order, answer, notice, now)

    return await _answered(context, merchant_id, order_id, answer, decide)


async def decline(context: Context, merchant_id: UUID, order_id: UUID, by: Reviewer, reason: str) -> Order:
    """Decline the order, based on the facts of the referral, and tell the consumer why. Raises NoReview or ReviewEnded."""
    answer = ReviewAnswer(ReviewState.DECLINED, by.person_id, by.words, printable(reason))
    return await _answered(context, merchant_id, order_id, answer, _declines(context, answer))


async def decline_unanswered(context: Context, merchant_id: UUID, order_id: UUID) -> None:
    """Decline the order if its review was not answered in time. The worker calls this; the review may have ended already."""
    decline_now = _declines(context, ReviewAnswer(ReviewState.UNANSWERED))

    def decide(found: ReviewedOrder) -> Outcome | None:
        due = found.order.review_by
        return None if due is None or context.now() < due else decline_now(found)

    with contextlib.suppress(Answered):
        outcome = (await settle(context, merchant_id, order_id, decide, reviews.read)).outcome
        if outcome is not None and outcome.decision is not None:
            context.decided(outcome.decision.decision)
            log.warning("review was not answered in time", extra={"facts": {"orderId": str(order_id)}})


def _declines(context: Context, answer: ReviewAnswer) -> Callable[[ReviewedOrder], Outcome]:
    decision_id = context.new_id()

    def decide(found: ReviewedOrder) -> Outcome:
        order, review, now = found.order, found.review, context.now()
        notices = tuple(
            _notice(context, kind, review, order, now)
            for kind in (NoticeKind.REVIEW_DECLINED, NoticeKind.DECLINED)
        )
        return decline_review(order, review, answer, decision_id, notices, now)

    return decide


def _notice(context: Context, kind: NoticeKind, review: Review, order: Order, now: datetime) -> Notice:
    # The letter gives the day of the consumer's request.
    day = review.referred_at.astimezone(ZoneInfo(review.zone)).date()
    return Notice(context.new_id(), kind, FIRST_INSTALLMENT, order.amount, day, now)


async def _answered(
    context: Context,
    merchant_id: UUID,
    order_id: UUID,
    answer: ReviewAnswer,
    decide: Callable[[ReviewedOrder], Outcome],
) -> Order:
    try:
        done = await settle(context, merchant_id, order_id, decide, reviews.read)
    except Answered as late:
        found = await reviews.read(context.pool, merchant_id, order_id)
        assert found is not None, "a review is never deleted"
        if _is(found.ended, answer):
            # A second click, or our own save whose result was lost.
            return found.order
        waits = found.ended.state is ReviewState.WAITING
        raise ReviewEnded(
            f"{_HOW[late.state] if waits else how_ended(found.ended)}. Nothing was changed."
        ) from None
    except Refused as refused:
        if refused.code is Code.ORDER_NOT_FOUND:
            raise NoReview(f"Order {order_id} was never referred to a person.") from None
        raise
    if done.outcome.decision is not None:
        context.decided(done.outcome.decision.decision)
    return done.order


def _is(ended: EndedReview, answer: ReviewAnswer) -> bool:
    """Whether this answer ended the review."""
    stored = (ended.state, ended.person_id, ended.answerer, ended.reason)
    return stored == (answer.state, answer.person_id, answer.words, answer.reason)


def how_ended(ended: EndedReview) -> str:
    """Describe in words how a review ended, without a period."""
    return _HOW.get(ended.state, f"{ended.answerer} has {ended.state} this order already")


async def find_review(context: Context, order_id: UUID) -> ReviewedOrder:
    """Return the review of an order of any merchant. Raises NoReview."""
    merchant_id = await decisions.whose(context.pool, order_id)
    found = None if merchant_id is None else await reviews.read(context.pool, merchant_id, order_id)
    if found is None:
        raise NoReview(f"Order {order_id} was never referred to a person.")
    return found
