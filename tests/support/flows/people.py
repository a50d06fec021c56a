"""A person whose data can be searched for in the database, and an order that contains all of this data."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Any

from cuota.core.consumer import Address, Profile
from cuota.flows.plan.send_messages import send_messages
from cuota.work.card_refunds import return_due_money
from cuota.work.due_orders import settle_due_orders
from support.makers import Merchant, complete
from support.own_service import Own

PHONE = "2125550177"
PERSON = Profile(
    "Wilhelmina",
    "Quackenbush",
    "mina@post.example",
    Address("77 Zephyr Lane", "Rear", "Xenia", "OH", "45385"),
)
PREFILL: dict[str, Any] = {
    "consumer": {
        "phoneNumber": PHONE,
        "givenNames": "Wilhelmina",
        "surname": "Quackenbush",
        "email": "mina@post.example",
    },
    "billing": {"addressLine1": "77 Zephyr Lane", "city": "Xenia", "state": "OH", "postcode": "45385"},
    "shipping": {"addressLine1": "77 Zephyr Lane", "city": "Xenia", "state": "OH", "postcode": "45385"},
    "description": "For Mina Quackenbush",
    "metadata": {"customer": "mina@post.example"},
    "taxAmount": "1.10",
    "items": [{"name": "A lamp", "quantity": 1, "price": 99.50}],
}
WORDS = (PHONE, "quackenbush", "wilhelmina", "mina@post", "zephyr", "45385", "xenia")


async def bought(own: Own, merchant: Merchant | None = None, phone: str = PHONE) -> dict[str, Any]:
    """Make an approved order of 100.00, captured at once, with every personal field."""
    merchant = merchant or own.auto_merchant
    order = await merchant.create("100.00", **PREFILL)
    await complete(own.service, merchant.merchant_id, order, profile=PERSON, phone=phone)
    return order


async def paid_off(own: Own) -> None:
    """Move the clock some weeks ahead, day by day: every installment is collected, and every message is sent."""
    for _ in range(60):
        own.service.clock.ahead += timedelta(days=1)
        while await settle_due_orders(own.context) + await return_due_money(own.context):
            pass
    # A reminder of the night waits for the morning.
    for hours in (0, 12):
        own.service.clock.ahead += timedelta(hours=hours)
        while await send_messages(own.context):
            pass


async def everything(own: Own) -> str:
    """Return everything in the database, in lower case and sorted: the shards of a cluster answer in any order."""
    async with own.owner() as owner:
        tables = await owner.fetch(
            "SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables WHERE schemaname !~ '^(pg_|information)'"
        )
        rows = [
            row[0] for table in tables for row in await owner.fetch(f"SELECT t::text FROM {table['name']} t")
        ]
    return "\n".join(sorted(rows)).casefold()


async def words_left(own: Own) -> list[str]:
    """Return which of the person's words are still there.

    Ignore the same five digits inside a longer number or a hash.
    """
    text = await everything(own)
    return [word for word in WORDS if re.search(rf"(?<![0-9a-z]){re.escape(word)}(?![0-9a-z])", text)]
