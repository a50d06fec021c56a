"""Movements: captures, voids and refunds, which all have the same fields."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from cuota.core import money
from cuota.core.order.order import Order, Status, balances
from cuota.core.refusal import Code, Refused


class MovementKind(StrEnum):
    """The kind of a movement. Merchant, order, kind and reference together are the idempotency key."""

    CAPTURE = "capture"
    VOID = "void"
    REFUND = "refund"


@dataclass(frozen=True, slots=True)
class Movement:
    """An applied capture, void or refund. `reference` is the merchant's key; `amount` is in cents."""

    kind: MovementKind
    movement_id: UUID
    reference: str
    amount: int
    at: datetime


@dataclass(frozen=True, slots=True)
class MovementRequest:
    """A merchant's request for a capture, void or refund. `amount` is in cents."""

    kind: MovementKind
    reference: str
    amount: int


def shown_balances(order: Order) -> dict[str, object]:
    """Return the order's balances as JSON decimals."""
    return {name: money.decimal_from(cents) for name, cents in balances(order).items()}


def refuse(code: Code, message: str, order: Order) -> Refused:
    """Return the refusal of a movement, with the balances that explain it."""
    return Refused(code, message, facts={"balances": shown_balances(order)})


def refuse_duplicate(order: Order, asked: MovementRequest, earlier: Movement, when: str) -> Refused:
    """Return the refusal of a repeated key. It contains the earlier movement, for a client that lost the first response."""
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
    """Raise Refused if the consumer has not completed the order."""
    if order.status is not Status.APPROVED:
        message = f"The order is {order.status}; a {kind} needs an order that the consumer has completed."
        raise refuse(Code.ORDER_NOT_COMPLETED, message, order)


def require_authorization(order: Order, now: datetime) -> None:
    """Raise Refused if the authorization has ended. At exactly its end time, it has ended."""
    ended = order.authorization_expires_at is not None and now >= order.authorization_expires_at
    if order.lapsed or (order.capturable and ended):
        # While a chargeback is open, nothing is voided (`lapse`).
        until = " when the chargeback is closed" if order.open_chargebacks and not order.lapsed else ""
        message = (
            f"The authorization has expired. What was not captured is released{until}. Create a new order."
        )
        raise refuse(Code.AUTHORIZATION_EXPIRED, message, order)
