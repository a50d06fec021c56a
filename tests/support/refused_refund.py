"""A refund that a card refused, so that the operator owes its amount."""

from __future__ import annotations

from typing import Any

from cuota.flows.order.return_money import return_money
from support.makers import complete
from support.own_service import Own


async def refuse_refund(own: Own) -> dict[str, Any]:
    """Make an order of 100.00 and refund 90.00: its card refuses the 15.00 that go back to it. Return the order."""
    shop = own.auto_merchant
    order = await shop.create("100.00")
    await complete(own.service, shop.merchant_id, order)
    assert (await shop.move(order, "refund", "90.00")).status_code == 200
    async with own.owner() as owner:
        await owner.execute("UPDATE card_simulator.charges SET refunded = amount")
    await return_money(own.context)
    return order
