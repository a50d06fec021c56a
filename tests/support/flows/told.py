"""The messages that consumers get when their money moves, and the hour at which it moves."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

from cuota.flows.plan.send_messages import send_messages
from cuota.rails.inbox import Received, look
from support.makers import Merchant, complete
from support.own_service import Own

ZONE = ZoneInfo("America/Los_Angeles")  # the state of makers.PROFILE
NOON, NIGHT = 12, 2


def move_to_hour(own: Own, hour: int) -> None:
    """Move the clock to this hour of the next day where the consumer lives."""
    local = own.service.clock.now().astimezone(ZONE)
    there = datetime(local.year, local.month, local.day, hour, tzinfo=ZONE) + timedelta(days=1)
    own.service.clock.ahead += there - local


async def bought(own: Own, shop: Merchant, amount: str = "100.00") -> dict[str, Any]:
    """Return an order for which a consumer agreed to a plan. The message about the plan's start is sent."""
    order = await shop.create(amount, merchantReference="A-1042")
    await complete(own.service, shop.merchant_id, order)
    await send_messages(own.context)
    return order


async def told(own: Own) -> list[Received]:
    """Return the mails sent after the plan's start, oldest first."""
    while await send_messages(own.context):
        pass
    found = [each for each in await look(own.context.pool) if each.channel == "mail"]
    return found[::-1][1:]
