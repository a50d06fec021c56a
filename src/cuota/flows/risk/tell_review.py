"""Describes the state of an order's review, in words for an operator."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from cuota.core.instant import timestamp
from cuota.core.risk.review import ReviewState
from cuota.db.risk.reviews import EndedReview, ListedReview, ReviewedOrder

_ENDED = {
    ReviewState.UNANSWERED: "nobody answered the review in time: declined",
    ReviewState.CLOSED: "the consumer canceled the order that waited for a review",
}


def review_steps(found: ReviewedOrder) -> list[tuple[datetime, str]]:
    """Return the events of the review with their times."""
    review, ended = found.review, found.ended
    begun = f"referred to a person, who must answer by {timestamp(review.answer_by)}"
    steps = [(review.referred_at, begun)]
    if ended.answered_at is not None:
        steps.append((ended.answered_at, review_ended(ended)))
    return steps


def review_ended(ended: EndedReview) -> str:
    """Describe in words how a review ended."""
    why = f" ({ended.reason})" if ended.reason else ""
    return _ENDED.get(ended.state) or f"review {ended.state} by {ended.answerer}{why}"


def review_facts(found: ReviewedOrder | ListedReview) -> dict[str, Any]:
    """Return the state of a review for scripts."""
    review = found.review if isinstance(found, ReviewedOrder) else found
    ended = found.ended
    return {
        "state": ended.state.value,
        "referredAt": timestamp(review.referred_at),
        "answerBy": timestamp(review.answer_by),
        "answeredAt": None if ended.answered_at is None else timestamp(ended.answered_at),
        "answeredBy": ended.answerer or None,
        "reason": ended.reason or None,
    }
