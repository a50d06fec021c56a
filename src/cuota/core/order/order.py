"""An order: its states, its totals, and the actions that they allow."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from uuid import UUID

from cuota.core.risk.review import ReviewState

# A charge without an answer is looked up after this time, which is longer than a call to the rail may take (rails/bounded.py).
LOOK_UP_AFTER = timedelta(seconds=15)

# The merchant gets warnings this long before an authorization ends, if there is something left to capture.
WARNINGS = (timedelta(hours=72), timedelta(hours=24))


class Status(StrEnum):
    """The values of `orderStatus`. There will never be a fifth."""

    CREATED = "Created"
    APPROVED = "Approved"
    DECLINED = "Declined"
    ABANDONED = "Abandoned"


class PaymentState(StrEnum):
    """The values of `paymentState`: the state of the money of an approved order."""

    NONE = "NONE"
    AUTHORIZED = "AUTHORIZED"
    PARTIALLY_CAPTURED = "PARTIALLY_CAPTURED"
    CAPTURED = "CAPTURED"
    VOIDED = "VOIDED"
    EXPIRED = "EXPIRED"


@dataclass(frozen=True, slots=True)
class Transition:
    """One allowed change of state, and its event. No change leaves a final state."""

    before: Status
    move: str
    after: Status
    event: str
    meaning: str


EDGES = (
    Transition(
        Status.CREATED, "approve", Status.APPROVED, "order.approved", "first installment charged, plan agreed"
    ),
    Transition(
        Status.CREATED, "decline", Status.DECLINED, "order.declined", "risk said no, or three cards failed"
    ),
    Transition(
        Status.CREATED,
        "reject",
        Status.DECLINED,
        "order.rejected",
        "started by script, outside the merchant's range",
    ),
    Transition(
        Status.CREATED,
        "leave",
        Status.ABANDONED,
        "order.abandoned",
        "the consumer left by the cancel control",
    ),
    Transition(
        Status.CREATED, "lapse", Status.ABANDONED, "order.abandoned", "the consumer did not finish it in time"
    ),
)
_BY_MOVE = {(edge.before, edge.move): edge for edge in EDGES}


class Final(Exception):
    """The order is Approved, Declined or Abandoned, and these states are final."""

    def __init__(self, status: Status) -> None:
        super().__init__(f"the order is {status} and stays so")
        self.status = status


def edge(before: Status, move: str) -> Transition:
    """Return the transition for a move. Raises Final if the state does not allow the move."""
    found = _BY_MOVE.get((before, move))
    if found is None:
        raise Final(before)
    return found


@dataclass(frozen=True, slots=True)
class Order:
    """The part of an order that changes when money moves. Amounts are cents; `amount` is the original amount.

    `version` increases with every save. `transfers` and `events` count the rows written so far, so that the numbers of ledger rows
    and events have no gaps. `fee` is the consumer's fee for the plan. `warned` counts the warnings sent before the
    authorization's end. `charging` is the charge for which the card rail has been called and has not answered, and
    `charging_since` the time of the last request; until there is an answer, no other charge begins. `collect_at` is when the plan's
    next reminder or charge is due.

    `disputed` and `charged_back` are withheld from the merchant, for the consumer's dispute and for chargebacks. While any dispute
    is open (`open_disputes`, of which `open_chargebacks` are chargebacks), no payment is scheduled; `paused_at` is when
    the pause began. `return_hold_until` is set while a payment waits for the refund of goods that the consumer sent back.

    `review` is the state of the review if risk has referred the order to a person. While it waits, `review_by` is the
    deadline for the answer.
    """

    merchant_id: UUID
    order_id: UUID
    version: int
    status: Status
    currency: str
    amount: int
    fee: int
    auto_capture: bool
    created_at: datetime
    expires_at: datetime
    captured: int = 0
    voided: int = 0
    refunded: int = 0
    fee_returned: int = 0
    authorization_expires_at: datetime | None = None
    lapsed: bool = False
    warned: int = 0
    card_failures: int = 0
    charging: UUID | None = None
    charging_since: datetime | None = None
    transfers: int = 0
    events: int = 0
    collect_at: datetime | None = None
    disputed: int = 0
    charged_back: int = 0
    open_disputes: int = 0
    open_chargebacks: int = 0
    paused_at: datetime | None = None
    return_hold_until: datetime | None = None
    review: ReviewState | None = None
    review_by: datetime | None = None

    @property
    def capturable(self) -> int:
        """The amount in cents that can still be captured or voided."""
        return self.amount - self.voided - self.captured if self.status is Status.APPROVED else 0

    @property
    def refundable(self) -> int:
        """The cents that can still be refunded: the captured amount that is not refunded and that no card network took back."""
        return self.captured - self.refunded - self.charged_back

    @property
    def payment_state(self) -> PaymentState:
        """The payment state. It is derived from the totals, so that it can never disagree with them."""
        if self.status is not Status.APPROVED:
            return PaymentState.NONE
        if self.captured == 0 and self.voided == self.amount:
            return PaymentState.EXPIRED if self.lapsed else PaymentState.VOIDED
        if self.captured == 0:
            return PaymentState.AUTHORIZED
        return PaymentState.PARTIALLY_CAPTURED if self.capturable else PaymentState.CAPTURED

    @property
    def due_at(self) -> datetime | None:
        """When the order's next scheduled work is due: looking up a charge, a timeout, a review, the end of the authorization, ..."""
        if self.charging_since is not None:
            return self.charging_since + LOOK_UP_AFTER
        if self.status is Status.CREATED:
            return self.review_by or self.expires_at
        return min(filter(None, (self.authorization_due_at, self.collect_at)), default=None)

    @property
    def authorization_due_at(self) -> datetime | None:
        """When the next warning about the authorization's end is due, or the authorization ends."""
        # While a chargeback is open, a void could refund money that the card's bank has already taken back.
        if not self.capturable or self.authorization_expires_at is None or self.open_chargebacks:
            return None
        ahead = WARNINGS[self.warned] if self.warned < len(WARNINGS) else timedelta(0)
        return self.authorization_expires_at - ahead


def balances(order: Order) -> dict[str, int]:
    """Return the balances that refusals (422) and dry runs show, in cents, by their JSON names."""
    return {
        "orderAmount": order.amount - order.voided,
        "captured": order.captured,
        "voided": order.voided,
        "refunded": order.refunded,
        "capturable": order.capturable,
        "voidable": order.capturable,
        "refundable": order.refundable,
    }
