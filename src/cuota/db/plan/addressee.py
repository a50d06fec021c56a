"""Whom a message is for. Two people may open the checkout of one order, so the order alone does not say it."""

from __future__ import annotations

from cuota.core.plan.notice import NoticeKind

# Letters about a risk decision are for the consumer of the decision, answers to a review for the consumer of the review. All other
# messages are for the payer of the plan.
_OF_REVIEWS = (NoticeKind.REVIEW_APPROVED, NoticeKind.REVIEW_DECLINED)
NOT_FOR_THE_PAYER = frozenset({NoticeKind.DECLINED, *_OF_REVIEWS})


def addressee(kind: str) -> str:
    """Return the SQL expression for the row that names the recipient: 'decision', 'review' or 'plan'. `kind` is the message's column."""
    reviews = ", ".join(f"'{each}'" for each in _OF_REVIEWS)
    return f"CASE WHEN {kind} = '{NoticeKind.DECLINED}' THEN 'decision' WHEN {kind} IN ({reviews}) THEN 'review' ELSE 'plan' END"
