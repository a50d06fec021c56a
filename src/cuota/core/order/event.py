"""Events about orders, payouts and bank accounts.

Events are numbered from 1 without gaps, and written in the same transaction as the money.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from cuota.core.order.movement import MovementKind
from cuota.core.order.order import EDGES, Status


class EventSubject(StrEnum):
    """The kinds of subjects of events."""

    ORDER = "order"
    PAYOUT = "payout"
    BANK_ACCOUNT = "bank account"


@dataclass(frozen=True, slots=True)
class EventType:
    """One type of event.

    `operation` is the operation that webhooks report, or None. `success` says whether the operation was done. `moved`
    is the kind of the movement that the event reports. `about` is the event's subject.
    """

    name: str
    operation: str | None = None
    success: bool = True
    moved: MovementKind | None = None
    about: EventSubject = EventSubject.ORDER


EVENT_TYPES = (
    EventType("order.created"),
    EventType("order.approved", "AuthorizeOrder"),
    EventType("order.declined", "AuthorizeOrder", success=False),
    EventType("order.rejected", "AuthorizeOrder", success=False),
    EventType("order.abandoned", success=False),
    EventType("capture.completed", "CaptureOrder", moved=MovementKind.CAPTURE),
    EventType("void.completed", "VoidOrder", moved=MovementKind.VOID),
    EventType("refund.completed", "RefundOrder", moved=MovementKind.REFUND),
    EventType("capture.rejected", "CaptureOrder", success=False),
    EventType("void.rejected", "VoidOrder", success=False),
    EventType("refund.rejected", "RefundOrder", success=False),
    EventType("authorization.expiring"),
    EventType("authorization.expired", "VoidOrder", moved=MovementKind.VOID),
    EventType("dispute.opened", success=False),
    EventType("dispute.evidence_due", success=False),
    EventType("dispute.submitted"),
    EventType("dispute.won"),
    EventType("dispute.lost", success=False),
    EventType("dispute.appealed", success=False),
    EventType("dispute.closed"),
    EventType("return.noticed"),
    EventType("payout.created", about=EventSubject.PAYOUT),
    EventType("payout.sent", about=EventSubject.PAYOUT),
    EventType("payout.paid", about=EventSubject.PAYOUT),
    EventType("payout.returned", success=False, about=EventSubject.PAYOUT),
    EventType("bank_account.changed", about=EventSubject.BANK_ACCOUNT),
)
_BY_NAME = {each.name: each for each in EVENT_TYPES}
# The movement that an event reports, and the final status of an order after an event.
MOVED = {each.name: each.moved for each in EVENT_TYPES if each.moved is not None}
FINAL_STATUS: dict[str, Status] = {edge.event: edge.after for edge in EDGES}
# The event that a merchant requests to test its webhooks. It belongs to no order and is not in EVENT_TYPES.
TEST_EVENT = "webhook.test"


def event_type(name: str) -> str:
    """Return the name of an event type. Raises ValueError if EVENT_TYPES has no such type."""
    if name not in _BY_NAME:
        raise ValueError(f"EVENT_TYPES has no event {name}.")
    return name


@dataclass(frozen=True, slots=True)
class Event:
    """One event, of a type in EVENT_TYPES. `amount` is in cents; `reference` is the movement's, or the dispute's or return's id."""

    type: str
    amount: int
    reference: str | None = None
    message: str | None = None

    def __post_init__(self) -> None:
        event_type(self.type)

    @property
    def operation(self) -> str | None:
        """Return the requested operation by its name in webhooks, or None."""
        return _BY_NAME[self.type].operation

    @property
    def success(self) -> bool:
        """True if the operation was done."""
        return _BY_NAME[self.type].success


# The first members of every event's body, including a test event's. No request has all of them.
_MARKS = frozenset({"id", "type", "timestamp"})


def is_event_body(body: Mapping[str, object]) -> bool:
    """Return whether this is the body of a webhook event."""
    return body.keys() >= _MARKS
