"""Code that the tests of reviews share: answers of the operator, and what is stored about a review."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from cuota.core.order.order import Order
from cuota.flows.plan.send_messages import send_messages
from cuota.flows.risk import answer_review
from cuota.flows.risk.answer_review import Reviewer
from support.makers import Running

ANA = Reviewer(None, "Ana Silva <ana@example.com>")
BEN = Reviewer(None, "Ben Okafor <ben@example.com>")
REASON = "the address is on file"


async def approve(service: Running, order: dict[str, Any], by: Reviewer = ANA, reason: str = REASON) -> Order:
    """Approve the review of an order, as the operator's page does."""
    return await answer_review.approve(service.context, *ids_of(order), by, reason)


async def decline(service: Running, order: dict[str, Any], by: Reviewer = ANA, reason: str = REASON) -> Order:
    """Decline the review of an order, as the operator's page does."""
    return await answer_review.decline(service.context, *ids_of(order), by, reason)


def ids_of(order: dict[str, Any]) -> tuple[UUID, UUID]:
    """Return the merchant's id and the order's id, from the address of the checkout."""
    merchant = (
        str(order.get("redirectUrl") or order["checkoutUrl"]).partition("/checkout/")[2].partition("?")[0]
    )
    return UUID(merchant), UUID(order["orderId"])


async def stored(service: Running, order: dict[str, Any], table: str = "reviews") -> dict[str, Any]:
    """Return the only row of an order in a table."""
    [row] = await service.context.pool.fetch(f"SELECT * FROM {table} WHERE order_id = $1", ids_of(order)[1])
    return dict(row)


async def texts_to(service: Running, phone: str) -> list[str]:
    """Send all messages that are due. Return the text messages to this number, without one-time codes, earliest first."""
    # Messages of other tests may be queued before.
    while await send_messages(service.context):
        pass
    sql = "SELECT text FROM message_simulator.inbox WHERE channel = 'text' AND recipient = $1 ORDER BY number"
    found = [row["text"] for row in await service.context.pool.fetch(sql, phone)]
    return [text for text in found if "We never ask you for it" not in text]
