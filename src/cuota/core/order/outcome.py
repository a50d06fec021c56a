"""An outcome holds everything that one decision changes; `db/order/outcomes.save` writes it in one statement."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date, datetime
from enum import StrEnum
from uuid import UUID

from cuota.core.consumer import Profile, ShippingAddress
from cuota.core.installment import Installment
from cuota.core.order.event import Event
from cuota.core.order.ledger import Transfer
from cuota.core.order.movement import Movement
from cuota.core.order.order import Order
from cuota.core.risk.decision import Decision


class JobState(StrEnum):
    """Where a call to a card stands: a charge, or money going back."""

    PENDING = "pending"
    SUCCEEDED = "succeeded"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class CardRefund:
    """Money that goes back to a card; the rail is asked later, outside the transaction. Cents."""

    card_refund_id: UUID
    charge_id: UUID
    amount: int


class Origin(StrEnum):
    """Who asked for a charge: only a scheduled one that fails is tried again by itself."""

    CHECKOUT = "checkout"
    SCHEDULE = "schedule"
    CONSUMER = "consumer"


@dataclass(frozen=True, slots=True)
class PlanCard:
    """The card that a plan is paid with, as it may be kept: the rail's token, brand and last four digits.

    `card_hash` is the keyed hash of its fingerprint; None where the rail gives none.
    """

    token: str
    brand: str
    last4: str
    card_hash: bytes | None = None


@dataclass(frozen=True, slots=True)
class Charge:
    """A card asked to pay an installment, written down before the rail is called. `charge_id` is the rail's key."""

    charge_id: UUID
    installment: int
    amount: int
    card_token: str
    card_brand: str
    card_last4: str
    origin: Origin = Origin.CHECKOUT


class NoticeKind(StrEnum):
    """What a consumer is told by the message rail."""

    PLAN_STARTED = "plan_started"  # the first payment went through; `day` is the next one's
    REMINDER = "reminder"  # a payment is due in a few days
    PAYMENT_RECEIVED = "payment_received"  # a scheduled payment went through
    PAYMENT_FAILED = "payment_failed"  # it did not; it is tried again on `day`
    CARD_NEEDED = "card_needed"  # it did not, and will not with this card
    PLAN_PAID_OFF = "plan_paid_off"  # a payment went through, and nothing is left to pay
    CARD_CHANGED = "card_changed"  # somebody who proved the number gave the plan another card
    REFUNDED = "refunded"  # the merchant gave back some of what it had captured
    VOIDED = "voided"  # the merchant gave up some of what it had not captured
    EXPIRED = "expired"  # the authorization ended, and what was not captured is given up
    DECLINED = "declined"  # risk said no: a letter with the reasons


@dataclass(frozen=True, slots=True)
class PlanStanding:
    """How a plan stands once a notice's money has moved. Cents.

    `left`: each payment that is still to be made, and its day. `back`: what goes back to the card of which charge.
    """

    left: tuple[tuple[date, int], ...] = ()
    back: tuple[tuple[UUID, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Notice:
    """A message to the consumer, written with what it tells of and sent by the worker from `send_at` on. Cents."""

    notice_id: UUID
    kind: NoticeKind
    installment: int
    amount: int
    day: date
    send_at: datetime
    standing: PlanStanding | None = None


@dataclass(frozen=True, slots=True)
class Settled:
    """The card rail's answer to a charge or a card refund, recorded with what follows from it."""

    job_id: UUID
    state: JobState
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """What the consumer agreed to: fixed, with the hash of the words and numbers that were shown."""

    consumer_id: UUID
    payer: Profile
    phone: str
    time_zone: str
    first_day: date
    agreement: str
    agreement_hash: str
    agreed_at: datetime
    shipping: ShippingAddress | None = None
    browser: bytes | None = None  # the session that pressed the button: it alone is shown a virtual card
    card_hash: bytes | None = None  # of the card that is asked, as PlanCard has it


class SignalKind(StrEnum):
    """What an order is tried with, that may be seen on others."""

    PHONE = "phone"
    CARD = "card"
    ADDRESS = "address"
    DEVICE = "device"


@dataclass(frozen=True, slots=True)
class Signal:
    """One thing that an order is tried with, as a keyed hash."""

    kind: SignalKind
    value_hash: bytes


@dataclass(frozen=True, slots=True)
class StoredDecision:
    """A risk decision as it is kept: whose it is, and what the order was tried with.

    `exposure` is the version of the consumer's exposure that it was made on: an approval made on an older one is
    stale, since another order of the same consumer was begun meanwhile.
    """

    decision_id: UUID
    consumer_id: UUID
    decision: Decision
    signals: tuple[Signal, ...] = ()
    exposure: int = 0


@dataclass(frozen=True, slots=True)
class Outcome:
    """One decision. `order` is the new row; its `version` is still the one that was read."""

    order: Order
    events: tuple[Event, ...] = ()
    movement: Movement | None = None
    transfers: tuple[Transfer, ...] = ()
    installments: tuple[Installment, ...] = ()
    card_refunds: tuple[CardRefund, ...] = ()
    plan: Plan | None = None
    charge: Charge | None = None
    charge_settled: Settled | None = None
    card_refund_settled: Settled | None = None
    decision: StoredDecision | None = None
    notices: tuple[Notice, ...] = ()
    plan_card: PlanCard | None = None
    at: datetime = field(kw_only=True)
