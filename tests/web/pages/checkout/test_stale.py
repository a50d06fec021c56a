"""If a decision cannot be saved, the page says what to do, and nothing is charged or sent twice."""

from __future__ import annotations

import asyncio
from uuid import UUID

import asyncpg

from cuota.run import runtime
from support.db.template import Template
from support.makers import Merchant, Running
from support.pages.beside import beside
from support.pages.visitor import ANSWERS, Visitor, address_of, charges
from support.phones import phone_number

_OF_ORDER = "SELECT count(*) AS n FROM {table} WHERE order_id = $1{more}"


async def count(service: Running, order: dict[str, str], table: str, more: str = "") -> int:
    row = await service.context.pool.fetchrow(
        _OF_ORDER.format(table=table, more=more), UUID(order["orderId"])
    )
    assert row is not None
    return int(row["n"])


async def test_twenty_declined_presses_cause_one_decision_one_letter_and_one_event(
    service: Running, merchant: Merchant, visitor: Visitor
) -> None:
    order = await merchant.create()
    await visitor.until("details", order, phone=phone_number())
    page = await visitor.send("details", surname="Declinetest")
    action, held = page.form("pay")
    data = {**{name: ANSWERS.get(name, value) for name, value in held.items()}, "agree": "yes"}
    answers = await asyncio.gather(*(visitor.http.post(action, data=data) for _ in range(20)))
    assert {(answer.status_code, answer.headers["location"]) for answer in answers} == {
        (303, address_of(order))
    }
    assert (await visitor.open(address_of(order))).outcome == "declined"
    assert await count(service, order, "decisions") == 1
    assert await count(service, order, "messages", " AND kind = 'declined'") == 1
    assert await count(service, order, "events", " AND type = 'order.declined'") == 1
    assert await charges(service, order) == []


async def test_if_the_consumer_s_other_orders_block_a_press_the_page_says_so_and_the_next_press_pays_once(
    product_limits: None, service: Running, merchant: Merchant, visitor: Visitor, template: Template
) -> None:
    phone = phone_number()
    await visitor.buy(await merchant.create(), phone=phone)
    order = await merchant.create()
    async with (
        runtime.opened(service.settings, template.shared, now=service.clock.now) as context,
        beside(context, service.clock).client() as http,
    ):
        await _blocked_and_again(service, Visitor(http), order, phone, template)


async def _blocked_and_again(
    service: Running, visitor: Visitor, order: dict[str, str], phone: str, template: Template
) -> None:
    await visitor.until("pay", order, phone=phone)
    held = await asyncpg.connect(**template.shared)
    try:
        async with held.transaction():
            await held.execute(
                "SELECT FROM consumer_exposure WHERE consumer_id = (SELECT consumer_id FROM checkout_sessions"
                " WHERE order_id = $1 AND consumer_id IS NOT NULL) FOR UPDATE", UUID(order["orderId"]),
            )  # fmt: skip
            page = await visitor.send("pay")
            assert await charges(service, order) == []
    finally:
        await held.close()
    assert (page.status, "nothing is charged twice" in page.text) == (503, True)
    page = await visitor.open(address_of(order))
    page = await visitor.send("pay")
    assert page.outcome == "approved"
    assert await charges(service, order) == [(2500, True, None)]
