"""Reads what a consumer can do about an order now: open a dispute, or report returned goods."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from cuota.core.dispute.dispute import OPEN_WITHIN, Dispute
from cuota.core.dispute.open_dispute import disputable, why_no_more
from cuota.core.dispute.return_notice import ReturnNotice
from cuota.db.dispute import disputes
from cuota.flows.context import Context
from cuota.flows.dispute.read_dispute import read_claims


@dataclass(frozen=True, slots=True)
class OrderDisputes:
    """All disputes and return notices of an order, and the largest amount that can be disputed now, in cents."""

    disputes: tuple[Dispute, ...] = ()
    returns: tuple[ReturnNotice, ...] = ()
    disputable: int = 0
    can_return: bool = False

    @property
    def open(self) -> Dispute | None:
        """Return the consumer's own open dispute, or else an open chargeback."""
        waiting = sorted(
            (each for each in self.disputes if each.is_open), key=lambda each: each.kind, reverse=True
        )
        return waiting[0] if waiting else None


async def disputes_of_order(context: Context, merchant_id: UUID, order_id: UUID) -> OrderDisputes:
    """Read the order's disputes and return notices, and the amount that can be disputed now."""
    found = await read_claims(context.pool, merchant_id, order_id)
    if found is None:
        return OrderDisputes()
    now: datetime = context.now()
    order = found.order
    most = 0 if why_no_more(found.claims) else disputable(order, found.plan, found.claims)
    held = order.return_hold_until is not None and now < order.return_hold_until
    return OrderDisputes(
        tuple(await disputes.of_order(context.pool, merchant_id, order_id)),
        tuple(await disputes.returns_of_order(context.pool, merchant_id, order_id)),
        most if not order.disputed and now < order.created_at + OPEN_WITHIN else 0,
        can_return=order.refundable > 0 and not held and order.paused_at is None,
    )
