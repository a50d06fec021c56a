"""A consumer reports that goods were sent back: the page and the message name the payment that waits, if there is one."""

from __future__ import annotations

from uuid import UUID

from cuota.core.dates import day
from cuota.db.plan import plans
from cuota.flows.plan.send_messages import send_messages
from cuota.rails.inbox import look
from support.makers import Merchant, Running
from support.own_service import Own
from support.pages.consumer import Consumer, Page, Plan
from support.phones import phone_number

WAITS = "Your payment of $25.00 waits until {}, or until the refund."


async def sent_back(consumer: Consumer, plan: Plan) -> Page:
    """Report the package, and return the plan's page."""
    page = await consumer.open(f"{plan.path}/return")
    action, held = page.form("return")
    answer = await consumer.http.post(action, data=held | {"carrier": "UPS", "tracking": "1Z999"})
    return await consumer.open(answer.headers["location"])


async def days_of(plan: Plan) -> list[str]:
    """Return the days of the payments, as pages show them."""
    ids = plan.shop.merchant_id, UUID(plan.order["orderId"])
    agreed = await plans.read(plan.shop.service.context.pool, *ids)
    assert agreed is not None
    return [day(item.due_on) for item in agreed.plan]


async def test_returned_goods_hold_the_next_payment(consumer: Consumer, shop: Merchant) -> None:
    plan = await consumer.buy_at(shop)
    await consumer.enter()
    page = await consumer.open(plan.path)
    assert "I sent it back" in page.text
    page = await consumer.open(f"{plan.path}/return")
    action, held = page.form("return")
    answer = await consumer.http.post(action, data=held | {"carrier": "UPS", "tracking": ""})
    assert answer.status_code == 400
    assert "printable characters" in answer.text
    for _ in range(2):
        answer = await consumer.http.post(action, data=held | {"carrier": "UPS", "tracking": "1Z999"})
        page = await consumer.open(answer.headers["location"])
        assert "You sent it back with UPS, number 1Z999" in page.text
        assert WAITS.format((await days_of(plan))[1]) in page.text


async def test_a_payment_that_is_due_before_the_one_that_waits_is_shown_as_the_next(
    service: Running, consumer: Consumer, shop: Merchant
) -> None:
    plan = await consumer.buy_at(shop)
    await consumer.enter()
    async with service.clock.moved(days=10):
        page = await sent_back(consumer, plan)
        _, second, third, _ = await days_of(plan)
        assert WAITS.format(second) in page.text
        assert f"Next payment $25.00 on {third}" in page.text
        assert page.link("Pay $25.00 early").endswith("?number=3")
        assert f"$25.00 on {third}" in (await consumer.open("/account")).text


async def test_after_the_wait_the_page_does_not_speak_of_it_any_more(
    service: Running, consumer: Consumer, shop: Merchant
) -> None:
    plan = await consumer.buy_at(shop)
    await consumer.enter()
    await sent_back(consumer, plan)
    async with service.clock.moved(days=22):
        await plan.collected()
        page = await consumer.open(plan.path)
    assert "You sent it back with UPS, number 1Z999" in page.text
    assert "waits until" not in page.text


async def test_if_no_payment_is_due_soon_neither_page_nor_message_says_that_one_waits(
    own: Own,
) -> None:
    for paid in ("all=1", "number=2"):
        async with own.service.client() as http:
            consumer = Consumer(http, own.service, phone_number())
            plan = await consumer.buy_at(own.auto_merchant)
            await consumer.enter()
            await consumer.pay(plan, paid)
            page = await sent_back(consumer, plan)
        assert "You sent it back with UPS, number 1Z999" in page.text
        assert "waits" not in page.text
        while await send_messages(own.context):
            pass
        (told,) = [
            each
            for each in await look(own.context.pool)
            if "sent your order" in each.text and each.channel == "text"
        ][:1]
        assert "waits" not in told.text
        assert plan.shop.name in told.text
