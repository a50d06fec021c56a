"""A review: a person decides about an order whose score is neither good enough to approve nor bad enough to decline."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from uuid import UUID

from cuota.core.risk.decision import Decision
from cuota.core.risk.signal import Signal

# The deadline of the answer is this long before the checkout ends, so that the consumer has time to confirm.
CONFIRM_TIME = timedelta(minutes=10)
# An order with less time than this is not referred: nobody could answer in time.
LEAST_TIME = timedelta(minutes=15)


class ReviewState(StrEnum):
    """The state of a review. Only `waiting` changes."""

    WAITING = "waiting"
    APPROVED = "approved"  # the consumer may confirm; risk decides once more at that moment
    DECLINED = "declined"
    UNANSWERED = "unanswered"  # nobody answered in time, so the order was declined
    CLOSED = "closed"  # the order ended in another way: the consumer canceled it


@dataclass(frozen=True, slots=True)
class Review:
    """An order that was referred to a person. `decision` is the referral: its facts, score, limit and reasons.

    `consumer_id` is who pressed the button; the answer counts for this consumer only. `zone` is the consumer's time zone.
    `signals` are written with the referral and not read back.
    """

    consumer_id: UUID
    decision: Decision
    zone: str
    referred_at: datetime
    answer_by: datetime
    signals: tuple[Signal, ...] = ()

    def declined(self) -> Decision:
        """Return the decision after a decline: the facts of the referral, plus the person's decline.

        `decide` returns the same for these facts. The stored values are used, so that no order stays open because the release
        that declines the order cannot read the policy.
        """
        made = self.decision
        return replace(made, referred=False, inputs={**made.inputs, "review": "declined"})


@dataclass(frozen=True, slots=True)
class ReviewAnswer:
    """How a review ended. `person_id` and `words` (name and e-mail address) say who answered. After a job, they are None and empty.

    `reason` is the operator's, and nobody else reads it.
    """

    state: ReviewState
    person_id: UUID | None = None
    words: str = ""
    reason: str = ""


def answer_by(expires_at: datetime) -> datetime:
    """Return the deadline for reviewing an order that expires at `expires_at`."""
    return expires_at - CONFIRM_TIME


def has_time(expires_at: datetime, now: datetime) -> bool:
    """Return whether an order that expires at `expires_at` has enough time left for a review."""
    return expires_at - now >= LEAST_TIME
