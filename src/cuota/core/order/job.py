"""Calls to a card rail: refunds to send, and the rail's answers to charges and refunds."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID


class JobState(StrEnum):
    """The state of a charge or a card refund."""

    PENDING = "pending"
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    CHARGED_BACK = (
        "charged_back"  # only of a card refund: the card's bank has returned the same money by a chargeback
    )
    PAID_OTHERWISE = "paid_otherwise"  # only of a card refund that failed: the operator has paid the consumer


@dataclass(frozen=True, slots=True)
class Settled:
    """The card rail's answer to a charge or a card refund. It is saved together with its consequences."""

    job_id: UUID
    state: JobState
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class CardRefund:
    """Money to refund to a card, in cents. The rail is called later, outside the transaction."""

    card_refund_id: UUID
    charge_id: UUID
    amount: int
