"""The notices to consumers about their plans. notice_words.py has their texts."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import date, datetime
from enum import StrEnum
from uuid import UUID
from zoneinfo import ZoneInfo

from cuota.core.plan.payday import Days


class NoticeKind(StrEnum):
    """The kinds of notices that the message rail sends to consumers."""

    PLAN_STARTED = "plan_started"  # the first payment succeeded; `day` is the day of the next payment
    REMINDER = "reminder"  # a payment is due in a few days
    PAYMENT_RECEIVED = "payment_received"  # a scheduled payment succeeded
    PAYMENT_FAILED = "payment_failed"  # a scheduled payment failed; it is retried on `day`
    CONFIRMATION_NEEDED = (
        "confirmation_needed"  # the card's bank wants the consumer to confirm a scheduled payment
    )
    CARD_NEEDED = "card_needed"  # a scheduled payment failed, and this card is not charged again
    PLAN_PAID_OFF = "plan_paid_off"  # a payment succeeded, and nothing is left to pay
    CARD_CHANGED = "card_changed"  # the consumer changed the plan's card
    REFUNDED = "refunded"  # the merchant refunded part or all of the captured amount
    VOIDED = "voided"  # the merchant voided part or all of the uncaptured amount
    EXPIRED = "expired"  # the authorization ended, and the uncaptured amount was voided
    DISPUTE_OPENED = "dispute_opened"  # the consumer's dispute arrived; `day` is the merchant's deadline
    DISPUTE_UPHELD = (
        "dispute_upheld"  # the dispute was decided for the consumer; `day` is when the decision becomes final
    )
    DISPUTE_REJECTED = (
        "dispute_rejected"  # the dispute was decided for the merchant; the consumer can appeal until `day`
    )
    DISPUTE_APPEALED = "dispute_appealed"  # the merchant appealed the decision
    DISPUTE_ENDED = "dispute_ended"  # the dispute was closed; `standing` has the amounts that go back, and the days of the next payments
    RETURN_NOTED = "return_noted"  # the goods are on their way back; the payment of `amount` waits until `day`, or none if `amount` is 0
    PLAN_CHANGED = "plan_changed"  # the operator agreed with the consumer on another plan; `standing` has the new payments
    REVIEW_APPROVED = (
        "review_approved"  # a person approved the order; the consumer may confirm it until the checkout ends
    )
    REVIEW_DECLINED = (
        "review_declined"  # a person declined the order, or nobody answered; the letter has the reasons
    )
    DECLINED = "declined"  # risk declined the order; the notice is a letter with the reasons


@dataclass(frozen=True, slots=True)
class PlanStanding:
    """The state of a plan after the change that a notice reports. Amounts are cents.

    `left` are the remaining payments with their days. `back` is the amount refunded to the card of each charge.
    """

    left: tuple[tuple[date, int], ...] = ()
    back: tuple[tuple[UUID, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Notice:
    """A message to the consumer. `amount` is in cents. The message is saved with the change that it reports, and sent from `send_at` on."""

    notice_id: UUID
    kind: NoticeKind
    installment: int
    amount: int
    day: date
    send_at: datetime
    standing: PlanStanding | None = None


# Notices that answer no action of the consumer are sent in the consumer's daytime: the merchant, the operator, the card network
# and background jobs act at any hour.
IN_DAYTIME = frozenset(
    {
        NoticeKind.REFUNDED,
        NoticeKind.VOIDED,
        NoticeKind.EXPIRED,
        NoticeKind.REMINDER,
        NoticeKind.PAYMENT_FAILED,
        NoticeKind.CONFIRMATION_NEEDED,
        NoticeKind.CARD_NEEDED,
        NoticeKind.DISPUTE_UPHELD,
        NoticeKind.DISPUTE_REJECTED,
        NoticeKind.DISPUTE_APPEALED,
        NoticeKind.DISPUTE_ENDED,
    }
)
# Notices about a payment that is not made yet. They are not sent if the payment was paid, canceled or moved in the meantime.
ABOUT_NEXT_CHARGE = frozenset(
    {
        NoticeKind.REMINDER,
        NoticeKind.PAYMENT_FAILED,
        NoticeKind.CONFIRMATION_NEEDED,
        NoticeKind.CARD_NEEDED,
    }
)
# The consumer waits for these with the phone in hand: they go by text message, even if e-mail is possible.
AWAITED = frozenset({NoticeKind.REVIEW_APPROVED, NoticeKind.REVIEW_DECLINED})


def in_daytime(notices: tuple[Notice, ...], zone: str | None) -> tuple[Notice, ...]:
    """Return the notices; those of IN_DAYTIME are sent in the next daytime of the consumer's time zone."""
    if zone is None or not any(each.kind in IN_DAYTIME for each in notices):
        return notices
    days = Days(ZoneInfo(zone))
    return tuple(
        replace(each, send_at=days.daytime(each.send_at)) if each.kind in IN_DAYTIME else each
        for each in notices
    )
