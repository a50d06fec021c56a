"""A dispute: its states, its deadlines, and the allowed transitions."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from uuid import UUID

from cuota.core.refusal import Code, Refused

# The merchant has this long to accept a dispute or to send evidence. Without an answer, the merchant loses.
RESPOND_WITHIN = timedelta(days=14)
# The merchant gets a reminder this long before the deadline.
REMIND_BEFORE = timedelta(days=3)
# The losing side may appeal a decision once, within this time. The money moves when no appeal is possible any more.
APPEAL_WITHIN = timedelta(days=10)
# A consumer can open a dispute until this long after the order was created.
OPEN_WITHIN = timedelta(days=180)
# The consumer can open this many disputes about one order. Each pauses the plan, so that without a limit nothing would ever be paid.
MOST_DISPUTES = 3


class DisputeKind(StrEnum):
    """The kind of a dispute.

    The consumer opens a `DISPUTE` at Cuota. In a `CHARGEBACK`, the card network has already taken back a payment.
    """

    DISPUTE = "dispute"
    CHARGEBACK = "chargeback"


class DisputeReason(StrEnum):
    """The reason of a dispute. `OTHER` is only for chargebacks whose reason the network did not report."""

    NOT_RECEIVED = "not_received"
    NOT_AS_DESCRIBED = "not_as_described"
    NOT_REFUNDED = "not_refunded"  # the goods were returned but not refunded
    WRONG_AMOUNT = "wrong_amount"
    NOT_MINE = "not_mine"
    OTHER = "other"


class DisputeStatus(StrEnum):
    """The states of a dispute, from the merchant's side."""

    OPEN = "open"
    UNDER_REVIEW = "under_review"
    WON = "won"
    LOST = "lost"
    APPEALED = "appealed"
    CLOSED = "closed"


class DisputeOutcome(StrEnum):
    """How a dispute has ended, from the merchant's side. It is set when the dispute is closed."""

    WON = "won"
    LOST = "lost"
    WITHDRAWN = "withdrawn"  # the consumer withdrew it
    RESOLVED = "resolved"  # the merchant refunded the whole amount in the meantime, or a chargeback replaced the dispute


class DisputeParty(StrEnum):
    """A party that acts in a dispute."""

    CONSUMER = "consumer"
    MERCHANT = "merchant"
    OPERATOR = "operator"
    NETWORK = "network"


@dataclass(frozen=True, slots=True)
class DisputeEdge:
    """One allowed move of a dispute, and its event. No move is allowed from `closed`."""

    before: DisputeStatus
    move: str
    after: DisputeStatus
    event: str
    meaning: str


_OPEN, _REVIEW, _WON = DisputeStatus.OPEN, DisputeStatus.UNDER_REVIEW, DisputeStatus.WON
_LOST, _APPEALED, _CLOSED = DisputeStatus.LOST, DisputeStatus.APPEALED, DisputeStatus.CLOSED
DISPUTE_EDGES = (
    DisputeEdge(_OPEN, "remind", _OPEN, "dispute.evidence_due", "three days before the merchant's deadline"),
    DisputeEdge(_OPEN, "submit", _REVIEW, "dispute.submitted", "the merchant sent evidence"),
    DisputeEdge(_REVIEW, "submit", _REVIEW, "dispute.submitted", "the merchant sent more evidence"),
    DisputeEdge(_APPEALED, "submit", _APPEALED, "dispute.submitted", "evidence for the appeal"),
    DisputeEdge(_OPEN, "accept", _LOST, "dispute.lost", "the merchant accepted"),
    DisputeEdge(_REVIEW, "accept", _LOST, "dispute.lost", "the merchant accepted after all"),
    DisputeEdge(_APPEALED, "accept", _LOST, "dispute.lost", "the merchant accepted during an appeal"),
    DisputeEdge(_OPEN, "expire", _LOST, "dispute.lost", "the merchant's deadline passed in silence"),
    DisputeEdge(_OPEN, "decide_for_merchant", _WON, "dispute.won", "the operator decided"),
    DisputeEdge(_OPEN, "decide_for_consumer", _LOST, "dispute.lost", "the operator decided"),
    DisputeEdge(_REVIEW, "decide_for_merchant", _WON, "dispute.won", "the operator decided"),
    DisputeEdge(_REVIEW, "decide_for_consumer", _LOST, "dispute.lost", "the operator decided"),
    DisputeEdge(_WON, "appeal", _APPEALED, "dispute.appealed", "the consumer appealed"),
    DisputeEdge(_LOST, "appeal", _APPEALED, "dispute.appealed", "the merchant appealed"),
    DisputeEdge(_APPEALED, "decide_for_merchant", _WON, "dispute.won", "the appeal was decided, finally"),
    DisputeEdge(_APPEALED, "decide_for_consumer", _LOST, "dispute.lost", "the appeal was decided, finally"),
    DisputeEdge(_WON, "close", _CLOSED, "dispute.closed", "no appeal is possible; the money is released"),
    DisputeEdge(_LOST, "close", _CLOSED, "dispute.closed", "no appeal is possible; the consumer has the money back"),
    *(
        DisputeEdge(before, move, _CLOSED, "dispute.closed", meaning)
        for before in (_OPEN, _REVIEW, _WON, _LOST, _APPEALED)
        for move, meaning in (
            ("withdraw", "the consumer gave up the dispute"),
            ("resolve", "all of it was refunded, or charged back, before it was decided"),
        )
    ),
    *(
        DisputeEdge(before, "network_decides", _CLOSED, "dispute.closed", "the card network decided a chargeback")
        for before in (_OPEN, _REVIEW, _LOST)
    ),
)  # fmt: skip
_BY_MOVE = {(edge.before, edge.move): edge for edge in DISPUTE_EDGES}


@dataclass(frozen=True, slots=True)
class Dispute:
    """One dispute. Amounts are in cents.

    `amount` is the amount that the consumer or the network claims, and never changes. `withheld` is the amount that is
    withheld from the merchant now: a refund reduces it, and the end of the dispute sets it to zero. `movement_id` is
    the refund that a lost dispute made; `release_id` is the cause of the ledger rows that released the withheld money
    to the merchant. A chargeback has the charge that was taken back, and the processor's own `reference`. `appeal_by`
    is when the decision becomes final; a decision that nobody may appeal is final at once. `final` is True if there
    will be no further appeal.
    """

    dispute_id: UUID
    kind: DisputeKind
    reason: DisputeReason
    status: DisputeStatus
    amount: int
    withheld: int
    opened_by: DisputeParty
    opened_at: datetime
    respond_by: datetime
    reminded: bool = False
    submitted_at: datetime | None = None
    decided_at: datetime | None = None
    appeal_by: datetime | None = None
    final: bool = False
    appealed_by: DisputeParty | None = None
    appealed_at: datetime | None = None
    closed_at: datetime | None = None
    outcome: DisputeOutcome | None = None
    movement_id: UUID | None = None
    release_id: UUID | None = None
    charge_id: UUID | None = None
    reference: str | None = None

    @property
    def is_open(self) -> bool:
        """True until the dispute is closed."""
        return self.status is not DisputeStatus.CLOSED

    def is_late(self, now: datetime) -> bool:
        """Return whether the merchant has not answered, and cannot answer any more."""
        return self.status is DisputeStatus.OPEN and now >= self.respond_by

    @property
    def due_at(self) -> datetime | None:
        """Return when the dispute's next scheduled work is due."""
        return next_work_at(self.status, self.kind, self.respond_by, self.appeal_by, reminded=self.reminded)


def next_work_at(
    status: str, kind: str, respond_by: datetime, appeal_by: datetime | None, *, reminded: bool
) -> datetime | None:
    """Return when a dispute's next scheduled work is due: the reminder, the deadline, or the closing."""
    if status == DisputeStatus.OPEN:
        if not reminded:
            return respond_by - REMIND_BEFORE
        return respond_by if kind == DisputeKind.DISPUTE else None
    return appeal_by if status in {DisputeStatus.WON, DisputeStatus.LOST} else None


def dispute_edge(dispute: Dispute, move: str) -> DisputeEdge:
    """Return the edge for a move. Raises Refused if the dispute's state does not allow it."""
    found = _BY_MOVE.get((dispute.status, move))
    if found is None:
        raise refuse_state(dispute, f"The dispute is {dispute.status}; this is not possible now.")
    return found


def refuse_state(dispute: Dispute, message: str) -> Refused:
    """Return the refusal of a transition that the dispute's state does not allow, with that state."""
    return Refused(Code.DISPUTE_STATE, message, facts={"disputeStatus": dispute.status.value})
