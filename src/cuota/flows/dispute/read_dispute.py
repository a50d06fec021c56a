"""Reads an order with one of its disputes, for a decision about the dispute."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from uuid import UUID

from cuota.core.dispute.claims import Claims
from cuota.core.dispute.close_dispute import MerchantFees
from cuota.core.dispute.dispute import Dispute
from cuota.core.installment import Installment
from cuota.core.order.movement import MovementKind
from cuota.core.order.order import Order
from cuota.core.refusal import Code, Refused
from cuota.db.dispute import disputes, files
from cuota.db.order import orders
from cuota.db.session import Session


@dataclass(frozen=True, slots=True)
class DisputedOrder:
    """An order with its plan, its open claims, one dispute, and the merchant's fees.

    `written` are the ids of the dispute's statements.
    """

    order: Order
    plan: tuple[Installment, ...]
    claims: Claims
    fees: MerchantFees
    dispute: Dispute
    written: frozenset[UUID]


@dataclass(frozen=True, slots=True)
class OrderWithClaims:
    """An order with its plan, its open claims, and the merchant's fees."""

    order: Order
    plan: tuple[Installment, ...]
    claims: Claims
    fees: MerchantFees


async def read_claims(session: Session, merchant_id: UUID, order_id: UUID) -> OrderWithClaims | None:
    """Read an order with its open claims.

    Return None if there is no such order, or if the consumer has not completed it.
    """
    # No movement has an empty reference, so this reads the order, its plan and its fees.
    found = await orders.read(session, merchant_id, order_id, MovementKind.REFUND, "", with_plan=True)
    if found is None:
        return None
    claims = await disputes.claims(session, merchant_id, order_id)
    if claims is None:
        return None
    return OrderWithClaims(found.order, found.plan, claims, MerchantFees(found.terms, found.fees))


def reading(dispute_id: UUID) -> Callable[[Session, UUID, UUID], Awaitable[DisputedOrder | None]]:
    """Return a function that reads an order with this dispute, open or closed.

    It raises Refused if there is no such dispute.
    """

    async def read(session: Session, merchant_id: UUID, order_id: UUID) -> DisputedOrder | None:
        found = await read_claims(session, merchant_id, order_id)
        if found is None:
            return None
        stored = await disputes.find(session, merchant_id, dispute_id)
        if stored is None or stored.order_id != order_id:
            raise dispute_not_found()
        written = await files.statements(session, merchant_id, dispute_id)
        ids = frozenset(each.evidence_id for each in written)
        return DisputedOrder(found.order, found.plan, found.claims, found.fees, stored.dispute, ids)

    return read


async def order_of(session: Session, merchant_id: UUID, dispute_id: UUID) -> UUID:
    """Return the id of a dispute's order. Raises Refused if the merchant has no such dispute."""
    found = await disputes.find(session, merchant_id, dispute_id)
    if found is None:
        raise dispute_not_found()
    return found.order_id


def dispute_not_found() -> Refused:
    """Return the same answer for an unknown dispute and another merchant's dispute."""
    return Refused(
        Code.DISPUTE_NOT_FOUND, "There is no such dispute. Check the disputeId and the credentials."
    )
