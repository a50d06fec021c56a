"""The extra rows that an outcome about a review writes: the parameters of `save_reviewed`."""

from __future__ import annotations

import hashlib
import json

from cuota.core.order.outcome import Outcome
from cuota.db.order.columns import REVIEWED, Values, reviewed_row
from cuota.db.order.save_call import JsonTable

_REVIEWS = JsonTable(
    "reviews",
    (
        "consumer_id uuid", "policy_version text", "inputs text", "inputs_hash bytea", "reasons text[]", "score integer",
        "credit_limit bigint", "time_zone text", "referred_at timestamptz", "answer_by timestamptz",
    ),
)  # fmt: skip
_ANSWERS = JsonTable(
    "reviews_answered",
    ("state text", "answered_at timestamptz", "person_id uuid", "answerer text", "reason text"),
)
JSONS = (_REVIEWS, _ANSWERS)
PARAMETERS = (
    *(f"reviewed_{typed}" for typed in REVIEWED),
    *(parameter for table in JSONS for parameter in table.parameters),
)


def review_values(outcome: Outcome) -> Values:
    """Return the values of PARAMETERS."""
    return (
        *reviewed_row(outcome.order),
        *_REVIEWS.values(_begun(outcome)),
        *_ANSWERS.values(_answered(outcome)),
    )


def _begun(outcome: Outcome) -> list[Values]:
    review = outcome.review
    if review is None:
        return []
    made, inputs = review.decision, json.dumps(review.decision.inputs)
    return [(
        review.consumer_id, made.policy_version, inputs, hashlib.sha256(inputs.encode()).digest(), list(made.reasons),
        made.score, made.limit, review.zone, review.referred_at, review.answer_by,
    )]  # fmt: skip


def _answered(outcome: Outcome) -> list[Values]:
    answer = outcome.review_answer
    if answer is None:
        return []
    return [(answer.state, outcome.at, answer.person_id, answer.words, answer.reason)]
