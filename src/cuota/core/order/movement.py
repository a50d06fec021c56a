"""Captures, voids and refunds have one shape: a movement of part of an order's money."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from cuota.core import money
from cuota.core.order.order import Order, Status, balances
from cuota.core.refusal import Code, Refused


class MovementKind(StrEnum):
    """Which of the three; with merchant, order and reference it is the idempotency key."""

    CAPTURE = "capture"
    VOID = "void"
    REFUND = "refund"


@dataclass(frozen=True, slots=True)
class Movement:
    """An applied capture, void or refund. `reference` is the merchant's key, `amount` in cents."""

    kind: MovementKind
    movement_id: UUID
    reference: str
    amount: int
    at: datetime


@dataclass(frozen=True, slots=True)
class MovementRequest:
    """What the merchant asks for: the same for all three."""

    kind: MovementKind
    reference: str
    amount: int


def shown_balances(order: Order) -> dict[str, object]:
    """Balances as JSON decimals."""
    return {name: money.decimal_from(cents) for name, cents in balances(order).items()}


def refuse(code: Code, message: str, order: Order) -> Refused:
    """A refusal of a money call, with the balances that explain it."""
    return Refused(code, message, facts={"balances": shown_balances(order)})


def refuse_duplicate(order: Order, asked: MovementRequest, earlier: Movement, when: str) -> Refused:
    """The key was applied already. Says what was applied, so that a caller who lost the answer learns of it."""
    same = earlier.amount == asked.amount
    original: dict[str, object] = {
        "operation": earlier.kind.value,
        "id": str(earlier.movement_id),
        "amount": money.decimal_from(earlier.amount),
        "dateTime": when,
        "sameRequest": same,
    }
    hint = (
        "It is the same request: nothing more needs to be done."
        if same
        else "Use a new reference for a new one."
    )
    message = f"This reference was already used for a {asked.kind} of {money.text_of(earlier.amount)} on this order. {hint}"
    facts: dict[str, object] = {"balances": shown_balances(order), "original": original}
    return Refused(Code.DUPLICATE_REFERENCE, message, facts=facts)


def require_completed(order: Order, kind: MovementKind) -> None:
    """Money moves only on an order that its consumer completed."""
    if order.status is not Status.APPROVED:
        message = f"The order is {order.status}; a {kind} needs an order that the consumer has completed."
        raise refuse(Code.ORDER_NOT_COMPLETED, message, order)


def require_authorization(order: Order, now: datetime) -> None:
    """An authorization holds until its end; at the very end it no longer does."""
    ended = order.authorization_expires_at is not None and now >= order.authorization_expires_at
    if order.lapsed or (order.capturable and ended):
        message = "The authorization has expired and what was not captured is released. Create a new order."
        raise refuse(Code.AUTHORIZATION_EXPIRED, message, order)
