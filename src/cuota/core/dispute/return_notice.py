"""A consumer's notice that the goods were sent back. The next installment waits for the refund."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, timedelta
from uuid import UUID

# The next installment is not charged for this long, or until the refund.
HOLD_FOR = timedelta(days=21)


@dataclass(frozen=True, slots=True)
class ReturnNotice:
    """One notice.

    `installment` is the payment that waits, and `due_on` its original day; both are None if no payment was left.

    `ended_at` is set when a refund ends the wait. `carrier` and `tracking` are as the consumer entered them.
    """

    return_id: UUID
    carrier: str
    tracking: str
    noticed_at: datetime
    hold_until: datetime
    installment: int | None = None
    due_on: date | None = None
    ended_at: datetime | None = None
