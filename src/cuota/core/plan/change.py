"""A change of an agreed plan for a consumer in hardship: what was agreed, and the plan before and after it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime
from enum import StrEnum
from typing import NamedTuple
from uuid import UUID

from cuota.core.installment import Installment


class ChangeKind(StrEnum):
    """The kinds of changes."""

    DATES_MOVED = "dates_moved"
    PAUSED = "paused"
    SMALLER_PAYMENTS = "smaller_payments"
    FEE_WAIVED = "fee_waived"


class PlannedPayment(NamedTuple):
    """An installment as a change stores it: its part of the order and of the fee, in cents."""

    number: int
    due_on: date
    amount: int
    fee: int

    @property
    def total(self) -> int:
        """The amount that the consumer pays, in cents."""
        return self.amount + self.fee


@dataclass(frozen=True, slots=True)
class PlanChange:
    """One change. It is never updated, except that `told_at` is set once the message with the new plan is sent.

    `number` counts the changes of the plan from 1. `days` is the length of a pause, the largest move of a date (of an overdue
    payment: from the day of the change), or the delay of the first of the smaller payments. `waived` is the part
    of the plan's fee that the consumer need not pay, in cents. `transfers` is how many ledger rows the order had before the change.
    `text` is what was agreed, with its SHA-256; an erasure leaves the hash only. `reason` is encrypted.
    """

    number: int
    change_id: UUID
    kind: ChangeKind
    changed_at: datetime
    changed_by: str
    days: int
    waived: int
    transfers: int
    before: tuple[PlannedPayment, ...]
    after: tuple[PlannedPayment, ...]
    reason: bytes | None
    text: str
    text_hash: str
    message_id: UUID
    told_at: datetime | None = None

    @property
    def said(self) -> str:
        """The change in one sentence, which is the second paragraph of its text; empty after an erasure."""
        return "".join(self.text.split("\n\n")[1:2])

    @property
    def payments(self) -> int:
        """How many installments the plan has after the change, including the paid and the canceled ones."""
        return len(self.after)


def planned(plan: Sequence[Installment]) -> tuple[PlannedPayment, ...]:
    """Return a plan as a change stores it."""
    return tuple(PlannedPayment(item.number, item.due_on, item.amount, item.fee) for item in plan)
