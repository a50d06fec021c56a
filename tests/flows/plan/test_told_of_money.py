"""Consumers get one message when their money moves. It names the shop, order, amount, card and remaining payments."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from cuota.core.dates import day
from cuota.core.installment import Installment
from cuota.core.plan.agreement import accepted_text
from cuota.db.gathered import Gathered
from cuota.db.plan import plans
from cuota.flows.plan.send_messages import send_messages
from cuota.rails.inbox import look
from cuota.rails.message import SandboxMessageRail
from support.db.same_pool import SamePool
from support.flows.due import settle_all_due
from support.flows.told import NOON, bought, move_to_hour, told
from support.makers import Merchant, complete
from support.own_service import Own
from support.rails.parts import rail_parts


@pytest.fixture(autouse=True)
def at_noon(own: Own) -> None:
    """Move the clock to noon where the consumer lives, so that no message waits for the morning."""
    move_to_hour(own, NOON)


async def plan_of(own: Own, shop: Merchant, order: dict[str, Any]) -> tuple[Installment, ...]:
    agreed = await plans.read(own.context.pool, shop.merchant_id, UUID(order["orderId"]))
    assert agreed is not None
    return agreed.found.plan


async def test_the_message_about_a_refund_has_the_shop_the_order_the_amount_the_card_and_the_remaining_payments(
    own: Own,
) -> None:
    shop = own.auto_merchant
    order = await bought(own, shop)
    assert (await shop.move(order, "refund", "30.00")).status_code == 200
    [message] = await told(own)
    plan = await plan_of(own, shop, order)
    assert message.subject == f"{shop.name} refunded $30.00"
    for words in (
        f"{shop.name} refunded $30.00 of your order A-1042. ",
        "Your plan has changed",
        f"Still to pay, by Visa ending 4242: $25.00 on {day(plan[1].due_on)}; $20.00 on {day(plan[2].due_on)}.",
        "/account",
    ):
        assert words in message.text


async def test_the_message_about_a_refund_above_the_unpaid_amount_says_how_much_goes_back_to_which_card(
    own: Own,
) -> None:
    shop = own.auto_merchant
    order = await bought(own, shop)
    assert (await shop.move(order, "refund", "85.00")).status_code == 200
    [message] = await told(own)
    assert "We are sending back $10.00 to Visa ending 4242." in message.text
    assert "Nothing is left to pay." in message.text


async def test_the_message_about_a_void_says_that_the_shop_canceled_a_part(own: Own) -> None:
    order = await bought(own, own.merchant)
    assert (await own.merchant.move(order, "void", "25.00")).status_code == 200
    [message] = await told(own)
    assert f"{own.merchant.name} canceled $25.00 of your order A-1042. " in message.text
    assert "Your plan has changed" in message.text


async def test_the_message_about_an_ended_authorization_says_that_the_shop_did_not_ship_and_how_much_goes_back(
    own: Own,
) -> None:
    order = await bought(own, own.merchant)
    own.service.clock.ahead += timedelta(days=13, seconds=5)
    await settle_all_due(own.context)
    [message] = await told(own)
    assert message.subject == f"$100.00 of your order at {own.merchant.name} is canceled"
    assert (
        f"{own.merchant.name} did not ship in time, so $100.00 of your order A-1042 is canceled."
        in message.text
    )
    assert "We are sending back $25.00 to Visa ending 4242." in message.text
    assert "Nothing is left to pay." in message.text
    assert (await own.merchant.read(order))["paymentState"] == "EXPIRED"


async def test_a_payment_that_the_end_of_the_authorization_will_cancel_has_no_reminder(own: Own) -> None:
    """The reminders would be due on days 11 and 13, but the authorization ends on day 13."""
    order = await bought(own, own.merchant)
    for _ in range(15):
        own.service.clock.ahead += timedelta(days=1)
        await settle_all_due(own.context)
    assert [message.subject for message in await told(own)] == [
        f"$100.00 of your order at {own.merchant.name} is canceled"
    ]
    del order


async def test_a_payment_has_a_reminder_if_the_shop_captures_the_order_in_time(own: Own) -> None:
    order = await bought(own, own.merchant)
    own.service.clock.ahead += timedelta(days=12)
    await settle_all_due(own.context)
    assert await told(own) == []
    assert (await own.merchant.move(order, "capture", "100.00")).status_code == 200
    own.service.clock.ahead += timedelta(days=1, hours=1)
    await settle_all_due(own.context)
    second = (await plan_of(own, own.merchant, order))[1]
    assert [message.subject for message in await told(own)] == [f"$25.00 is due on {day(second.due_on)}"]


async def test_a_payment_that_the_end_of_the_authorization_will_cancel_only_in_part_has_a_reminder(
    own: Own,
) -> None:
    order = await bought(own, own.merchant)
    assert (await own.merchant.move(order, "capture", "30.00")).status_code == 200
    own.service.clock.ahead += timedelta(days=12)
    await settle_all_due(own.context)
    assert [message.subject.startswith("$25.00 is due on") for message in await told(own)] == [True]


async def test_the_last_receipt_says_that_the_plan_is_paid_off(own: Own) -> None:
    await bought(own, own.auto_merchant, "8.00")
    for _ in range(46):
        own.service.clock.ahead += timedelta(days=1)
        await settle_all_due(own.context)
    subjects = [message.subject for message in await told(own)]
    assert subjects.count("Your plan is paid off") == 1
    assert subjects.count("We received $2.00") == 2


async def test_twenty_refunds_at_once_with_one_reference_cause_one_message(own: Own) -> None:
    shop = own.auto_merchant
    order = await bought(own, shop)
    body = {"amount": "10.00", "merchantRefundReference": "once"}
    answers = await asyncio.gather(
        *(shop.http.post(f"/order/{order['orderId']}/refund", json=body) for _ in range(20))
    )
    assert sorted(answer.status_code for answer in answers) == [200] + [422] * 19
    await asyncio.gather(*(send_messages(own.context) for _ in range(4)))
    assert len(await told(own)) == 1


class Crashing(SandboxMessageRail):
    """A rail that sends the message, and then ends the worker before it can record that."""

    async def send(self, message: Any) -> None:
        await super().send(message)
        raise asyncio.CancelledError


async def test_a_worker_that_dies_after_sending_does_not_send_it_twice(own: Own) -> None:
    shop = own.auto_merchant
    order = await bought(own, shop)
    await shop.move(order, "refund", "10.00")
    rails = replace(own.context.rails, message=Crashing(*rail_parts(own.context.pool)))
    with pytest.raises(asyncio.CancelledError):
        await send_messages(replace(own.context, rails=rails))
    own.service.clock.ahead += timedelta(minutes=2)
    assert len(await told(own)) == 1
    texts = [
        each for each in await look(own.context.pool) if each.channel == "text" and "refunded" in each.text
    ]
    assert len(texts) == 1


async def test_the_results_of_messages_that_are_sent_together_are_saved_together(own: Own) -> None:
    shop = own.auto_merchant
    for _ in range(8):
        order = await shop.create()
        await complete(own.service, shop.merchant_id, order)
    await send_messages(own.context)
    found = await own.context.pool.fetchrow(
        """SELECT count(*) AS messages, count(DISTINCT xmin::text) AS transactions
        FROM messages WHERE merchant_id = $1 AND state = 'sent'""",
        shop.merchant_id,
    )
    assert found is not None
    assert found["messages"] == 8
    assert found["transactions"] < 8


class LostEntry(SamePool):
    """The node through which orders are saved is gone. Statements on the pool itself are answered."""

    lost = 0

    async def together(self, kind: Gathered[Any, Any], merchant_id: UUID | None, asked: Any) -> Any:
        if merchant_id is None:
            return await super().together(kind, merchant_id, asked)
        self.lost += 1
        raise ConnectionError("the node of this database session is gone")


async def test_a_message_whose_result_cannot_be_saved_through_the_entry_node_is_not_sent_again(
    own: Own,
) -> None:
    order = await own.auto_merchant.create()
    await complete(own.service, own.auto_merchant.merchant_id, order)
    pool = LostEntry(own.context.pool)
    assert await send_messages(replace(own.context, pool=pool)) == 1
    assert pool.lost == 1
    states = await own.context.pool.fetch(
        "SELECT state, try_at FROM messages WHERE merchant_id = $1", own.auto_merchant.merchant_id
    )
    assert [tuple(row) for row in states] == [("sent", None)]


async def test_the_stored_data_of_a_sent_notice_contains_no_personal_data(own: Own) -> None:
    shop = own.auto_merchant
    order = await bought(own, shop)
    await shop.move(order, "refund", "85.00")
    async with own.owner() as owner:
        standing = await owner.fetchval("SELECT standing FROM messages WHERE kind = 'refunded'")
    assert set(json.loads(standing)) == {"left", "back"}
    assert [cents for _, cents in json.loads(standing)["back"]] == [1000]


async def test_a_dry_run_of_a_refund_sends_no_message(own: Own) -> None:
    shop = own.auto_merchant
    order = await bought(own, shop)
    body = {"amount": "10.00", "merchantRefundReference": "perhaps"}
    answer = await shop.http.post(f"/order/{order['orderId']}/refund?dryRun=true", json=body)
    assert answer.status_code == 200
    assert await told(own) == []


async def test_the_whole_agreement_is_mailed_when_the_plan_starts(own: Own) -> None:
    order = await bought(own, own.auto_merchant)
    async with own.owner() as owner:
        stored = await owner.fetchval(
            "SELECT agreement FROM plans WHERE order_id = $1", UUID(order["orderId"])
        )
    found = {
        each.channel: each.text for each in await look(own.context.pool) if "payment 1 of 4" in each.text
    }
    assert accepted_text(stored) in found["mail"]
    assert own.context.settings.creditor in found["mail"]
    assert "This agreement is between" not in found["text"]
