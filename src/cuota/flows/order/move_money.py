"""What captures, voids and refunds share: the reference decided first, a lost answer found again, a dry run."""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from uuid import UUID

from cuota.core.installment import Installment
from cuota.core.instant import timestamp
from cuota.core.order.event import Event
from cuota.core.order.movement import Movement, MovementKind, MovementRequest, refuse_duplicate
from cuota.core.order.order import Order
from cuota.core.order.outcome import Outcome
from cuota.core.refusal import Code, Refused
from cuota.db.order import orders
from cuota.db.order.orders import Found
from cuota.db.order.outcomes import Answer
from cuota.db.session import Session
from cuota.flows.context import Context
from cuota.flows.settle import order_not_found, settle

Read = Callable[[Session], Awaitable[Found | None]]
Decide = Callable[[Found, UUID], Outcome]
Remember = Callable[[Movement], Answer]


# The most that a column holds. Nobody has an order of more: a typing error, which the answer alone tells.
_MOST_CENTS = 2**63 - 1

# A repeat is not told: what it repeats was, when it was applied.
TOLD = frozenset(
    {
        Code.CAPTURE_EXCEEDS_AUTHORIZED,
        Code.VOID_EXCEEDS_UNCAPTURED,
        Code.REFUND_EXCEEDS_CAPTURED,
        Code.ORDER_NOT_COMPLETED,
        Code.AUTHORIZATION_EXPIRED,
    }
)


class _AlreadyOurs(Exception):  # noqa: N818 - a fact: the save whose answer was lost had been applied
    def __init__(self, movement: Movement) -> None:
        super().__init__()
        self.movement = movement


@dataclass(frozen=True, slots=True)
class Preview:
    """What would happen: the order and plan before and after, and the cents that would go back to cards."""

    asked: MovementRequest
    before: Order
    plan_before: tuple[Installment, ...]
    after: Order
    plan_after: tuple[Installment, ...]
    to_card: int


async def move(
    context: Context,
    merchant_id: UUID,
    order_id: UUID,
    asked: MovementRequest,
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
    except Refused as refused:
        if refused.code in TOLD and asked.amount <= _MOST_CENTS:
            await _tell(context, merchant_id, order_id, asked, read, refused)
        raise
    assert outcome.movement is not None
    return outcome.movement


async def _tell(
    context: Context, merchant_id: UUID, order_id: UUID, asked: MovementRequest, read: Read, refused: Refused
) -> None:
    """A rejected movement is an event too, `success` false. The refusal stands whether it can be written or not."""
    operation = f"{asked.kind.capitalize()}Order"
    event = Event(f"{asked.kind}.rejected", asked.amount, operation, asked.reference, False, refused.message)

    def decide(found: Found) -> Outcome:
        return Outcome(order=found.order, events=(event,), at=context.now())

    with contextlib.suppress(Refused):
        await settle(context, merchant_id, order_id, read, decide)


async def preview(
    context: Context, merchant_id: UUID, order_id: UUID, asked: MovementRequest, decide: Decide
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


def _refuse_repeat(found: Found, asked: MovementRequest) -> None:
    if found.earlier is not None:
        raise refuse_duplicate(found.order, asked, found.earlier, timestamp(found.earlier.at))


def with_plan(merchant_id: UUID, order_id: UUID, kind: MovementKind, reference: str) -> Read:
    """The read of a void or a refund, which change the plan."""

    async def read(session: Session) -> Found | None:
        return await orders.read(session, merchant_id, order_id, kind, reference, with_plan=True)

    return read
