"""Makes several checkouts of one consumer, each ready to pay, and presses the payment button."""

from __future__ import annotations

from datetime import UTC, datetime

from cuota.core.checkout.card import read_card
from cuota.core.order.order import Order
from cuota.db.checkout.loaded import Checkout
from cuota.flows.checkout.take_step import propose
from cuota.flows.context import Context
from support.card import pay
from support.makers import checkout
from support.own_service import Own

CARD = "4242 4242 4242 4242"


async def press(context: Context, seen: Checkout) -> Order:
    assert seen.session.profile is not None
    entry = read_card(CARD, "12/39", "123", datetime.now(UTC).date())
    return await pay(context, seen, entry, propose(context, seen, seen.session.profile).agreement.hash)


async def opened(own: Own, phone: str, count: int, amount: str) -> list[Checkout]:
    """Make checkouts of one consumer, at two merchants in turn, each ready to pay."""
    found = []
    for index in range(count):
        merchant = (own.merchant, own.auto_merchant)[index % 2]
        seen, _ = await checkout(
            own.service, merchant.merchant_id, await merchant.create(amount), phone=phone
        )
        found.append(seen)
    return found
