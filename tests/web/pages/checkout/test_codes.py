"""One-time codes: how often a code may be entered, and how often codes may be requested."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from uuid import UUID

from support.makers import Merchant, Running
from support.pages.beside import beside
from support.pages.visitor import Visitor


async def test_after_a_wrong_code_the_page_asks_again(merchant: Merchant, visitor: Visitor) -> None:
    await visitor.until("code", await merchant.create())
    page = await visitor.send("code", code="654321")
    assert (page.status, "This code is wrong." in page.text) == (400, True)
    assert page.form("code")[1]["code"] == ""
    assert (await visitor.send("code", code=" 123 456 ")).form("details")


async def test_after_five_wrong_codes_even_the_right_one_is_refused_until_a_new_one_is_sent(
    merchant: Merchant, visitor: Visitor
) -> None:
    await visitor.until("code", await merchant.create())
    for _ in range(5):
        await visitor.send("code", code="000000")
    page = await visitor.send("code")
    assert (page.status, "Too many wrong codes. Request a new one." in page.text) == (400, True)
    page = await visitor.send("resend")
    assert (page.status, "A new code is on its way to •••• ••87." in page.text) == (200, True)
    assert (await visitor.send("code")).form("details")


async def test_concurrent_wrong_codes_are_all_counted(merchant: Merchant, visitor: Visitor) -> None:
    await visitor.until("code", await merchant.create())
    action, held = visitor.page.form("code")
    await asyncio.gather(*(visitor.http.post(action, data={**held, "code": f"{n:06d}"}) for n in range(20)))
    assert "Too many wrong codes." in (await visitor.send("code")).text


async def test_a_code_that_is_too_old_is_refused(
    service: Running, merchant: Merchant, visitor: Visitor
) -> None:
    order = await merchant.create()
    await visitor.until("code", order)
    # Codes use the real clock, which no test can move. So the test moves the code's expiration.
    sql = "UPDATE checkout_sessions SET code_ends_at = now() WHERE order_id = $1"
    await service.context.pool.execute(sql, UUID(order["orderId"]))
    assert "This code has expired. Request a new one." in (await visitor.send("code")).text


async def test_one_browser_gets_six_codes_and_not_a_seventh(merchant: Merchant, visitor: Visitor) -> None:
    await visitor.until("code", await merchant.create())
    for _ in range(5):
        assert (await visitor.send("resend")).status == 200
    page = await visitor.send("resend")
    assert (page.status, "Too many codes were requested." in page.text) == (400, True)
    assert (await visitor.send("code")).form("details")


async def test_codes_requested_at_the_same_moment_have_the_same_limit(
    service: Running, merchant: Merchant, visitor: Visitor
) -> None:
    order = await merchant.create()
    await visitor.until("code", order)
    action, held = visitor.page.form("resend")
    await asyncio.gather(*(visitor.http.post(action, data=held) for _ in range(20)))
    sql = "SELECT codes_sent FROM checkout_sessions WHERE order_id = $1"
    assert [row[0] for row in await service.context.pool.fetch(sql, UUID(order["orderId"]))] == [6]


async def test_outside_the_sandbox_one_number_gets_24_codes_an_hour_from_all_browsers_together(
    service: Running, merchant: Merchant
) -> None:
    context, at = service.context, service.clock.now()
    live = replace(context.settings, environment="production")
    # The limit is by the hour on the clock, so this clock stands still.
    production = beside(context, service.clock, settings=live, now=lambda: at)
    said = []
    for _ in range(5):
        async with production.client() as http:
            visitor = Visitor(http)
            await visitor.open((await merchant.create())["redirectUrl"])
            said.append((await visitor.send("phone", phone="917 555 0104")).text)
            if len(said) < 25:
                said.extend([(await visitor.send("resend")).text for _ in range(5)])
    assert ["Too many codes were requested." in text for text in said] == [False] * 24 + [True]


async def test_a_code_works_only_in_the_browser_that_requested_it(
    merchant: Merchant, visit: Callable[..., Visitor]
) -> None:
    order = await merchant.create()
    own, other = visit(), visit()
    await own.until("code", order)
    await other.open(order["redirectUrl"])
    await own.send("code")
    assert (await other.open(order["redirectUrl"])).form("phone")
