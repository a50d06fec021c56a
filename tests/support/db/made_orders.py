"""Makes orders and outcomes, for the tests of how the database saves them."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from uuid import UUID

from cuota.core.installment import Installment
from cuota.core.order import posting
from cuota.core.order.event import Event
from cuota.core.order.movement import Movement, MovementKind
from cuota.core.order.order import Order, Status
from cuota.core.order.outcome import Outcome
from cuota.db.order.outcomes import NewOrder
from cuota.flows.context import new_id, new_token

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


def created(merchant_id: UUID) -> NewOrder:
    order = Order(
        merchant_id=merchant_id,
        order_id=new_id(),
        version=1,
        status=Status.CREATED,
        currency="USD",
        amount=10_000,
        fee=0,
        auto_capture=False,
        created_at=NOW,
        expires_at=NOW + timedelta(hours=1),
        events=1,
    )
    return NewOrder(order, new_token(), "reference", "{}", (Event("order.created", order.amount),))


def approved(order: Order) -> Outcome:
    day = date(2026, 3, 1)
    plan = tuple(Installment(n, day + timedelta(days=14 * n), 2500, 0) for n in range(1, 5))
    new = replace(order, status=Status.APPROVED, authorization_expires_at=NOW + timedelta(days=7))
    return Outcome(order=new, installments=plan, events=(Event("order.approved", order.amount),), at=NOW)


def read_again(outcome: Outcome) -> Order:
    """Return the order that the next request would read."""
    new = outcome.order
    transfers, events = new.transfers + len(outcome.transfers), new.events + len(outcome.events)
    return replace(new, version=new.version + 1, transfers=transfers, events=events)


def moved(order: Order, kind: MovementKind, reference: str, cents: int) -> Outcome:
    total = {"capture": "captured", "void": "voided", "refund": "refunded"}[kind]
    new = replace(order, **{total: getattr(order, total) + cents})
    owed = new.amount - new.voided - new.refunded
    plan = tuple(
        Installment(n, date(2026, 3, 1) + timedelta(days=14 * n), owed // 4 + (owed % 4 if n == 4 else 0), 0)
        for n in range(1, 5)
    )
    movement_id = new_id()
    return Outcome(
        order=new,
        movement=Movement(kind, movement_id, reference, cents, NOW),
        installments=() if kind is MovementKind.CAPTURE else plan,
        transfers=tuple(posting.capture(movement_id, cents)),
        events=(Event(f"{kind}.completed", cents, reference),),
        at=NOW,
    )
