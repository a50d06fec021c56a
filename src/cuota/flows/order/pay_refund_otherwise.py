"""Settles a card refund that failed: the operator has paid the consumer in another way, so nothing is owed any more."""

from __future__ import annotations

from dataclasses import dataclass
from uuid import UUID

from cuota.core.expected_failure import ExpectedFailure
from cuota.core.order.card_refund import pay_otherwise
from cuota.core.order.job import JobState
from cuota.core.order.order import Order
from cuota.core.order.outcome import Outcome
from cuota.db.order import orders
from cuota.db.plan import charges
from cuota.db.plan.charges import SettledRefund
from cuota.db.session import Session
from cuota.flows.context import Context
from cuota.flows.settle import settle

_WHY_NOT = {
    JobState.PENDING: "is on its way to the card. Wait until it succeeds or fails.",
    JobState.SUCCEEDED: "is on the card. Nothing is owed to the consumer.",
    JobState.CHARGED_BACK: "is not owed any more: a lost chargeback returned the same money to the consumer.",
}
_DISPUTED = (
    "belongs to a payment with an open chargeback. Wait until it is closed, because it may return the same money to the consumer."
    " Then list the failed refunds again with: cuota card-refunds"
)


class NotOwed(ExpectedFailure):
    """The card refund does not exist, or its money is not owed to the consumer. The text says why."""


@dataclass(frozen=True, slots=True)
class _Owed:
    """An order with one of its card refunds."""

    order: Order
    refund: SettledRefund


async def pay_refund_otherwise(context: Context, card_refund_id: UUID) -> int | None:
    """Record that the operator has paid a failed refund in another way. Return the amount in cents.

    Return None if that was recorded before. Raises NotOwed.
    """
    place = await charges.place_of_refund(context.pool, card_refund_id)
    if place is None:
        raise NotOwed(
            f"There is no card refund {card_refund_id}. List the failed ones with: cuota card-refunds"
        )

    async def read(session: Session, merchant_id: UUID, order_id: UUID) -> _Owed | None:
        found = await orders.read_with_plan(session, merchant_id, order_id)
        # Read this after the order: if the refund changes in between, the order's version is stale and nothing is saved.
        refund = await charges.settled_refund(session, merchant_id, order_id, card_refund_id)
        return None if found is None or refund is None else _Owed(found.order, refund)

    def decide(read: _Owed) -> Outcome | None:
        state = JobState(read.refund.state)
        if state in _WHY_NOT:
            raise NotOwed(f"Card refund {card_refund_id} {_WHY_NOT[state]}")
        if state is JobState.PAID_OTHERWISE:
            return None
        if read.refund.disputed:
            raise NotOwed(f"Card refund {card_refund_id} {_DISPUTED}")
        return pay_otherwise(read.order, card_refund_id, read.refund.left, read.refund.reason, context.now())

    done = await settle(context, *place, decide, read)
    return None if done.outcome is None else done.found.refund.left
