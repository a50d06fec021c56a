"""What captures, voids and refunds share: the reference decided first, a lost answer found again, a dry run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

from cuota.core.installment import Installment
from cuota.core.movement import Asked, Kind, Movement, refuse_duplicate
from cuota.core.order import Order
from cuota.core.outcome import Outcome
from cuota.db import orders
from cuota.db.orders import Found, Session
from cuota.db.outcomes import Answer
from cuota.flows.context import Context
from cuota.flows.settle import order_not_found, settle

Read = Callable[[Session], Awaitable[Found | None]]
Decide = Callable[[Found, UUID], Outcome]
Remember = Callable[[Movement], Answer]


class _AlreadyOurs(Exception):  # noqa: N818 - a fact: the save whose answer was lost had been applied
    def __init__(self, movement: Movement) -> None:
        super().__init__()
        self.movement = movement


@dataclass(frozen=True, slots=True)
class Preview:
    """What would happen: the order and plan before and after, and the cents that would go back to cards."""

    asked: Asked
    before: Order
    plan_before: tuple[Installment, ...]
    after: Order
    plan_after: tuple[Installment, ...]
    to_card: int


def timestamp(at: datetime) -> str:
    """ISO 8601 in UTC, to the millisecond: `2026-11-21T09:30:00.123Z`."""
    return at.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


async def move(
    context: Context,
    merchant_id: UUID,
    order_id: UUID,
    asked: Asked,
    read: Read,
    decide: Decide,
    remember: Remember | None,
) -> Movement:
    """Apply one movement exactly once and answer it. Duplicate is decided before any limit."""
    movement_id = context.new_id()

    def decide_here(found: Found) -> Outcome:
        if found.earlier is not None and found.earlier.movement_id == movement_id:
            raise _AlreadyOurs(found.earlier)
        _refuse_repeat(found, asked)
        return decide(found, movement_id)

    def keep(outcome: Outcome) -> Answer:
        assert remember is not None
        assert outcome.movement is not None
        return remember(outcome.movement)

    try:
        outcome = await settle(context, merchant_id, order_id, read, decide_here, keep if remember else None)
    except _AlreadyOurs as applied:
        return applied.movement
    assert outcome.movement is not None
    return outcome.movement


async def preview(
    context: Context, merchant_id: UUID, order_id: UUID, asked: Asked, decide: Decide
) -> Preview:
    """Decide on what is read and save nothing."""
    found = await orders.read(
        context.pool, merchant_id, order_id, asked.kind, asked.reference, with_plan=True
    )
    if found is None:
        raise order_not_found()
    _refuse_repeat(found, asked)
    outcome = decide(found, context.new_id())
    after = {item.number: item for item in (*found.plan, *outcome.installments)}
    to_card = sum(item.amount for item in outcome.card_refunds)
    return Preview(asked, found.order, found.plan, outcome.order, tuple(after.values()), to_card)


def _refuse_repeat(found: Found, asked: Asked) -> None:
    if found.earlier is not None:
        raise refuse_duplicate(found.order, asked, found.earlier, timestamp(found.earlier.at))


def with_plan(merchant_id: UUID, order_id: UUID, kind: Kind, reference: str) -> Read:
    """The read of a void or a refund, which change the plan."""

    async def read(session: Session) -> Found | None:
        return await orders.read(session, merchant_id, order_id, kind, reference, with_plan=True)

    return read
