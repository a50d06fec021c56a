"""Messages about a shop's actions at the consumer's night are sent in the morning."""

from __future__ import annotations

from datetime import timedelta

import pytest

from cuota.flows.plan.send_messages import send_messages
from support.disputes import decided, disputed
from support.flows.due import settle_all_due
from support.flows.told import NIGHT, NOON, bought, move_to_hour, told
from support.own_service import Own


@pytest.fixture(autouse=True)
def at_noon(own: Own) -> None:
    """Begin at noon where the consumer lives."""
    move_to_hour(own, NOON)


async def test_a_message_about_a_shop_s_action_at_night_is_sent_in_the_morning(own: Own) -> None:
    shop = own.auto_merchant
    order = await bought(own, shop)
    move_to_hour(own, NIGHT)
    await shop.move(order, "refund", "10.00")
    assert await told(own) == []
    own.service.clock.ahead += timedelta(hours=7, minutes=1)
    assert len(await told(own)) == 1


async def test_no_job_looks_at_a_message_about_a_refund_at_night_before_the_morning(own: Own) -> None:
    shop = own.auto_merchant
    order = await bought(own, shop)
    move_to_hour(own, NIGHT)
    await shop.move(order, "refund", "10.00")
    assert await send_messages(own.context) == 0
    own.service.clock.ahead += timedelta(hours=7, minutes=1)
    assert await send_messages(own.context) == 1


async def test_a_decision_about_a_dispute_at_night_is_told_in_the_morning(own: Own) -> None:
    shop = own.auto_merchant
    dispute = await disputed(shop, await bought(own, shop), 1000)
    assert len(await told(own)) == 1
    move_to_hour(own, NIGHT)
    await decided(shop, dispute, for_consumer=False)
    assert len(await told(own)) == 1
    own.service.clock.ahead += timedelta(hours=7, minutes=1)
    assert len(await told(own)) == 2


async def test_a_reminder_that_is_late_waits_for_the_morning(own: Own) -> None:
    await bought(own, own.auto_merchant)
    # All background jobs stood still from before the reminder until the next night.
    async with own.owner() as owner:
        remind_at = await owner.fetchval("SELECT min(remind_at) FROM installments")
    own.service.clock.ahead += remind_at - own.service.clock.now()
    move_to_hour(own, NIGHT)
    await settle_all_due(own.context)
    assert await told(own) == []
    own.service.clock.ahead += timedelta(hours=7, minutes=1)
    assert len(await told(own)) == 1


async def test_messages_that_were_stored_as_due_at_night_are_postponed_and_lose_no_attempt(own: Own) -> None:
    shop = own.auto_merchant
    order = await bought(own, shop)
    move_to_hour(own, NIGHT)
    for amount in ("10.00", "20.00"):
        await shop.move(order, "refund", amount)
    # The previous release stored them as due at once.
    await own.context.pool.fetch(
        "UPDATE messages SET try_at = $2 WHERE merchant_id = $1 AND kind = 'refunded'",
        shop.merchant_id,
        own.context.now(),
    )
    assert await send_messages(own.context) == 2
    assert await send_messages(own.context) == 0
    rows = await own.context.pool.fetch(
        "SELECT state, tries FROM messages WHERE merchant_id = $1 AND kind = 'refunded'", shop.merchant_id
    )
    assert [tuple(row) for row in rows] == [("pending", 0)] * 2
    own.service.clock.ahead += timedelta(hours=7, minutes=1)
    assert len(await told(own)) == 2


async def test_of_two_messages_about_refunds_at_night_only_the_later_one_has_the_remaining_payments(
    own: Own,
) -> None:
    shop = own.auto_merchant
    order = await bought(own, shop)
    move_to_hour(own, NIGHT)
    await shop.move(order, "refund", "30.00")
    await shop.move(order, "refund", "45.00")
    own.service.clock.ahead += timedelta(hours=7, minutes=1)
    found = {message.subject: message.text for message in await told(own)}
    first, second = (found[f"{shop.name} refunded {amount}"] for amount in ("$30.00", "$45.00"))
    assert "Still to pay" not in first
    assert "Nothing is left to pay." not in first
    assert "Nothing is left to pay." in second
