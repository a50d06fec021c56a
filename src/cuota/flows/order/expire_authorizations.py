"""An authorization ends: its merchant is told ahead, and what was never captured is voided by the service."""

from __future__ import annotations

from uuid import UUID

from cuota.core.order.outcome import Outcome
from cuota.core.order.void import lapse, warn
from cuota.db.order import orders
from cuota.db.order.orders import Found
from cuota.db.session import Session
from cuota.flows.context import Context
from cuota.flows.settle import settle


class _NothingToDo(Exception):  # noqa: N818 - a fact: a capture or void was quicker
    pass


async def expire_authorization(context: Context, merchant_id: UUID, order_id: UUID) -> None:
    """Void the uncaptured rest, if the authorization has ended; tell the merchant ahead, if it soon does."""
    movement_id = context.new_id()

    async def read(session: Session) -> Found | None:
        return await orders.read_with_plan(session, merchant_id, order_id)

    def decide(found: Found) -> Outcome:
        now = context.now()
        outcome = lapse(found.order, found.plan, movement_id, now, context.new_id) or warn(found.order, now)
        if outcome is None:
            raise _NothingToDo
        return outcome

    try:
        await settle(context, merchant_id, order_id, read, decide)
    except _NothingToDo:
        return
