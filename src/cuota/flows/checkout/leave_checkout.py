"""The consumer leaves by the cancel control, or nobody finished in time."""

from __future__ import annotations

from uuid import UUID

from cuota.core.checkout.ending import Charging, abandon
from cuota.core.order.order import Final, Order
from cuota.core.order.outcome import Outcome
from cuota.db.order import orders
from cuota.db.order.orders import Found
from cuota.db.session import Session
from cuota.flows.context import Context
from cuota.flows.settle import settle


class _StillTime(Exception):  # noqa: N818 - a fact: the consumer may go on
    pass


async def leave_checkout(context: Context, merchant_id: UUID, order_id: UUID) -> Order:
    """Abandon the order now. Raises Final, or Charging while a card is being charged."""
    return (await _abandon(context, merchant_id, order_id, left=True)).order


async def lapse_order(context: Context, merchant_id: UUID, order_id: UUID) -> None:
    """The worker's way: its time is over. Somebody else may have ended it first, or freed it to go on: as well."""
    try:
        await _abandon(context, merchant_id, order_id, left=False)
    except (Final, Charging, _StillTime):
        return


async def _abandon(context: Context, merchant_id: UUID, order_id: UUID, *, left: bool) -> Outcome:
    async def read(session: Session) -> Found | None:
        return await orders.read_with_plan(session, merchant_id, order_id)

    def decide(found: Found) -> Outcome:
        # What was due when the worker looked may be so no longer: a declined card gives the consumer the rest of the time.
        if not left and context.now() < found.order.expires_at:
            raise _StillTime
        return abandon(found.order, context.now(), left=left)

    return await settle(context, merchant_id, order_id, read, decide)
