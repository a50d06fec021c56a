"""Code that captures, voids and refunds share: checking the reference first, finding a lost save again, and dry runs."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from uuid import UUID

from cuota.core.installment import Installment
from cuota.core.instant import timestamp
from cuota.core.order.event import Event
from cuota.core.order.movement import Movement, MovementKind, MovementRequest, refuse_duplicate
from cuota.core.order.order import Order
from cuota.core.order.outcome import Outcome
from cuota.core.plan.notice import in_daytime
from cuota.core.refusal import Code, Refused
from cuota.db.dispute import disputes
from cuota.db.order import orders
from cuota.db.order.orders import Found
from cuota.db.session import Session
from cuota.flows.afterwards import afterwards
from cuota.flows.context import Context
from cuota.flows.settle import MakeAnswer, Read, order_not_found, settle

Decide = Callable[[Found, UUID], Outcome]

# The largest amount that a column can hold. A larger amount is a typing error: the merchant gets the refusal, but no event.
_MOST_CENTS = 2**63 - 1

# Refusals that also become an event. A duplicate reference does not: its first use already had an event.
TOLD = frozenset(
    {
        Code.CAPTURE_EXCEEDS_AUTHORIZED,
        Code.VOID_EXCEEDS_UNCAPTURED,
        Code.REFUND_EXCEEDS_CAPTURED,
        Code.ORDER_NOT_COMPLETED,
        Code.AUTHORIZATION_EXPIRED,
    }
)


@dataclass(frozen=True, slots=True)
class Preview:
    """The result of a dry run: the order and plan before and after, and the cents that would go back to cards."""

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
    decide: Decide,
    keep: MakeAnswer | None,
) -> Movement:
    """Apply one movement exactly once and return it. A repeated reference is refused before any limit is checked."""
    movement_id = context.new_id()

    def decide_here(found: Found) -> Outcome | None:
        if found.earlier is not None and found.earlier.movement_id == movement_id:
            # Our own earlier save was applied, and we lost its result.
            return None
        _refuse_repeat(found, asked)
        outcome = decide(found, movement_id)
        # The message is stored with the time of its sending, so that no job looks at it before the morning. A capture has none.
        return (
            replace(outcome, notices=in_daytime(outcome.notices, found.zone)) if outcome.notices else outcome
        )

    try:
        done = await settle(context, merchant_id, order_id, decide_here, _reading(asked), keep)
    except Refused as refused:
        if refused.code in TOLD and asked.amount <= _MOST_CENTS:
            await _tell(context, merchant_id, order_id, asked, refused)
        raise
    moved = done.outcome.movement if done.outcome else done.found.earlier
    assert moved is not None
    return moved


def _reading(asked: MovementRequest) -> Read[Found]:
    """Read the order and an earlier movement with this reference; also the plan, unless it is a capture."""

    async def read(session: Session, merchant_id: UUID, order_id: UUID) -> Found | None:
        with_plan = asked.kind is not MovementKind.CAPTURE
        found = await orders.read(
            session, merchant_id, order_id, asked.kind, asked.reference, with_plan=with_plan
        )
        return await with_claims(session, found) if asked.kind is MovementKind.REFUND else found

    return read


async def with_claims(session: Session, found: Found | None) -> Found | None:
    """Add the order's open claims: its disputes and its return notice. Most orders have none, and need no further read."""
    if found is None or not (found.order.open_disputes or found.order.return_hold_until):
        return found
    order = found.order
    return replace(found, claims=await disputes.claims(session, order.merchant_id, order.order_id))


async def _tell(
    context: Context, merchant_id: UUID, order_id: UUID, asked: MovementRequest, refused: Refused
) -> None:
    """Write an event, `success` false, for a refused movement. The caller is refused even if this fails."""
    event = Event(f"{asked.kind}.rejected", asked.amount, asked.reference, refused.message)

    def decide(found: Found) -> Outcome:
        return Outcome(order=found.order, events=(event,), at=context.now())

    with afterwards("an event about a refused movement"), contextlib.suppress(Refused):
        await settle(context, merchant_id, order_id, decide, _reading(asked))


async def preview(
    context: Context, merchant_id: UUID, order_id: UUID, asked: MovementRequest, decide: Decide
) -> Preview:
    """Read, decide, and save nothing."""
    found = await orders.read(
        context.pool, merchant_id, order_id, asked.kind, asked.reference, with_plan=True
    )
    if asked.kind is MovementKind.REFUND:
        found = await with_claims(context.pool, found)
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
