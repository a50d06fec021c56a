"""What the review of an order says about the order and its decisions."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, NamedTuple

from cuota.db.nested import Nested
from cuota.db.risk.reviews import INTACT

# How many declines repeat the referral: its facts except `review`, its policy, reasons, score and limit.
_REPEATED = """(SELECT count(*) FROM decisions d WHERE d.merchant_id = $1 AND d.order_id = r.order_id
    AND d.inputs ->> 'review' = 'declined' AND d.consumer_id = r.consumer_id AND d.policy_version = r.policy_version
    AND d.reasons = r.reasons AND d.score = r.score AND d.credit_limit = r.credit_limit
    AND d.inputs::jsonb - 'review' = r.inputs::jsonb - 'review')"""
REVIEWED = Nested(
    "reviewed",
    ("r.state", "r.answer_by", "r.inputs ->> 'amount'", INTACT, _REPEATED),
    "FROM reviews r WHERE r.merchant_id = $1 AND r.order_id = o.order_id",
)


class StoredReview(NamedTuple):
    """A review as `cuota verify` reads it. `amount` is text, in cents. `repeated` counts the declines on its facts."""

    state: str
    answer_by: datetime
    amount: str
    intact: bool
    repeated: int

    @property
    def declined(self) -> bool:
        """True if a person or the job declined the order."""
        return self.state in {"declined", "unanswered"}


def disagreements(facts: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield every row about the order's review that differs, as (row, problem)."""
    review = next((StoredReview(*row) for row in facts["reviewed"]), None)
    said = [reviewed for *_, reviewed, _ in facts["decided"]]
    state = None if review is None else review.state
    if facts["review"] != state:
        yield "orders.review", f"is {facts['review']}, its review says {state}"
    expected = review.answer_by if review is not None and state == "waiting" else None
    if facts["review_by"] != expected:
        yield "orders.review_by", f"is {facts['review_by']}, its review says {expected}"
    if "approved" in said and state != "approved":
        yield "decisions", f"a decision says that a person approved the order, but the review is {state}"
    if said.count("declined") != bool(review and review.declined):
        yield "decisions", f"{said.count('declined')} say that a review declined the order, but it is {state}"
    if review is None:
        return
    if review.declined and review.repeated != 1:
        yield "decisions", "the decline of the review does not have the facts of the referral"
    if not review.intact:
        yield "reviews", "its inputs were changed after it was made"
    if review.amount != str(facts["amount"]):
        yield "reviews", f"was made about {review.amount}, the order is {facts['amount']}"
