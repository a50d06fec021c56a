"""Finds the dispute that an operator names, and the merchant of the order that an operator names."""

from __future__ import annotations

from uuid import UUID

from cuota.core.refusal import Code, Refused
from cuota.db.dispute import disputes
from cuota.db.risk import decisions
from cuota.flows.context import Context
from cuota.flows.order.find_order import NothingToExplain, order_id_of


async def merchant_of_dispute(context: Context, dispute_id: UUID) -> UUID:
    """Return the id of a dispute's merchant. Raises Refused if there is no such dispute."""
    found = await disputes.find_anywhere(context.pool, dispute_id)
    if found is None:
        message = f"There is no dispute {dispute_id}. `cuota dispute list` lists the disputes."
        raise Refused(Code.DISPUTE_NOT_FOUND, message)
    return found[0]


async def order_named(context: Context, named: str) -> tuple[UUID, UUID]:
    """Return the merchant's id and the order's id, given the order's id or the merchant's reference.

    Raises NothingToExplain if that does not name exactly one order, and Refused if its consumer has not completed it.
    """
    order_id = await order_id_of(context, named)
    merchant_id = await decisions.whose(context.pool, order_id)
    if merchant_id is None:
        raise NothingToExplain(f"There is no order {named}.")
    if await disputes.claims(context.pool, merchant_id, order_id) is None:
        message = "The consumer has not completed this order, so there is nothing to dispute."
        raise Refused(Code.DISPUTE_NOT_POSSIBLE, message)
    return merchant_id, order_id
