"""Jobs of a card rail: money on its way back to a card, and the rail's answer to a charge or a refund."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from uuid import UUID


class JobState(StrEnum):
    """Where a call to a card stands: a charge, or money going back."""

    PENDING = "pending"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class Settled:
    """The card rail's answer to a charge or a card refund, recorded with what follows from it."""

    job_id: UUID
    state: JobState
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class CardRefund:
    """Money that goes back to a card; the rail is asked later, outside the transaction. Cents."""

    card_refund_id: UUID
    charge_id: UUID
    amount: int
