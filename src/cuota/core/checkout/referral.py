"""An order that risk refers to a person waits until it is approved, declined or abandoned.

While an order waits, its status is Created. A referral stores no charge and no card: after an approval, the consumer confirms
the order again.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from uuid import UUID

from cuota.core.checkout.ending import require_open
from cuota.core.order.event import Event
from cuota.core.order.order import Order, edge
from cuota.core.order.outcome import Outcome
from cuota.core.plan.notice import Notice
from cuota.core.risk.decision import StoredDecision
from cuota.core.risk.review import Review, ReviewAnswer, ReviewState


class Answered(Exception):
    """The review has already ended. `state` says how."""

    def __init__(self, state: ReviewState) -> None:
        super().__init__(f"the review is {state}")
        self.state = state


def refer(order: Order, review: Review, now: datetime) -> Outcome:
    """Let the order wait for a person. Raises what `require_open` raises."""
    require_open(order, now)
    waiting = replace(order, review=ReviewState.WAITING, review_by=review.answer_by)
    return Outcome(order=waiting, review=review, at=now)


def require_waiting(order: Order) -> None:
    """Check that the order was referred and that its review still waits for an answer. Raises Answered."""
    assert order.review is not None, "only an order that was referred has a review"
    if order.review is not ReviewState.WAITING:
        raise Answered(order.review)


def approve_review(order: Order, answer: ReviewAnswer, notice: Notice, now: datetime) -> Outcome:
    """Let the consumer continue.

    `notice` is the message to the consumer. Raises Answered, also if the time for an answer has ended.
    """
    require_waiting(order)
    if order.review_by is None or now >= order.review_by:
        raise Answered(ReviewState.UNANSWERED)
    going_on = replace(order, review=answer.state, review_by=None)
    return Outcome(order=going_on, review_answer=answer, notices=(notice,), at=now)


def decline_review(
    order: Order,
    review: Review,
    answer: ReviewAnswer,
    decision_id: UUID,
    notices: tuple[Notice, ...],
    now: datetime,
) -> Outcome:
    """Decline the order, based on the facts of the referral.

    `notices` are the messages that tell the consumer why. Raises Answered.
    """
    require_waiting(order)
    move = edge(order.status, "decline")
    event = Event(move.event, order.amount, message="The order was not approved.")
    done = replace(order, status=move.after, review=answer.state, review_by=None)
    decision = StoredDecision(decision_id, review.consumer_id, review.declined())
    return Outcome(
        order=done, events=(event,), decision=decision, review_answer=answer, notices=notices, at=now
    )
