"""A message provider that is down for days costs no consumer a letter, and no old message is wrong when it arrives."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from cuota.core.message import Message
from cuota.core.order.order import Status
from cuota.flows.context import Context
from cuota.flows.plan.send_messages import send_messages
from cuota.rails.unavailable import RailUnavailable
from support.disputes import decided, disputed
from support.flows.told import NOON, bought, move_to_hour, told
from support.makers import PROFILE, complete
from support.own_service import Own
from support.phones import phone_number


class DownRail:
    """A message rail that sends nothing."""

    shown_code = None

    async def send(self, message: Message) -> None:
        raise RailUnavailable("the provider is down")


@pytest.fixture(autouse=True)
def at_noon(own: Own) -> None:
    """Begin at noon where the consumer lives."""
    move_to_hour(own, NOON)


def down(own: Own) -> Context:
    return replace(own.context, rails=replace(own.context.rails, message=DownRail()))  # type: ignore[arg-type]


async def down_for(own: Own, days: int) -> None:
    """Try to send every hour for so many days. The provider is back after that, and the longest wait for a retry has passed."""
    broken = down(own)
    for _ in range(days * 24):
        while await send_messages(broken):
            pass
        own.service.clock.ahead += timedelta(hours=1)
    own.service.clock.ahead += timedelta(hours=12)
    move_to_hour(own, NOON)


async def subjects(own: Own) -> list[str]:
    return [each.subject for each in await told(own)]


async def test_a_letter_about_a_declined_order_is_sent_after_an_outage_of_five_days(own: Own) -> None:
    await bought(own, own.merchant)
    order = await own.merchant.create("900.00")
    payer = replace(PROFILE, surname="Declinetest")
    done = await complete(own.service, own.merchant.merchant_id, order, profile=payer, phone=phone_number())
    assert done.status is Status.DECLINED
    await down_for(own, 5)
    assert f"About your order at {own.merchant.name}" in await subjects(own)


async def test_a_consumer_learns_of_a_decision_after_an_outage_of_five_days_in_time_for_an_appeal(
    own: Own,
) -> None:
    shop = own.auto_merchant
    dispute = await disputed(shop, await bought(own, shop), 1000)
    known = len(await told(own))
    await decided(shop, dispute, for_consumer=False)
    await down_for(own, 5)
    assert "we decided for the shop" in (await subjects(own))[known:][0]


async def test_a_message_that_never_gets_through_is_given_up_after_a_month(own: Own) -> None:
    await bought(own, own.auto_merchant)
    shop = own.auto_merchant
    await shop.move(await bought(own, shop), "refund", "10.00")
    broken, began = down(own), own.context.now()
    while own.context.now() < began + timedelta(days=40):
        while await send_messages(broken):
            pass
        own.service.clock.ahead += timedelta(hours=3)
    rows = await own.context.pool.fetch("SELECT state, settled_at FROM messages WHERE kind = 'refunded'")
    assert [row["state"] for row in rows] == ["failed"]
    assert timedelta(days=28) <= rows[0]["settled_at"] - began <= timedelta(days=33)


async def test_an_acknowledgment_of_a_dispute_is_not_sent_after_the_decision(own: Own) -> None:
    shop = own.auto_merchant
    order = await bought(own, shop)
    dispute = await disputed(shop, order, 1000)
    await decided(shop, dispute, for_consumer=False)
    found = await subjects(own)
    assert [each for each in found if "We have your dispute" in each] == []
    assert [each for each in found if "we decided for the shop" in each]
