"""A card rail that does not answer: the consumer waits on a page that says so. The charge is looked up, never repeated."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from cuota.flows.context import Context
from cuota.flows.merchant.suspend_merchant import suspend_merchant
from cuota.rails.card.breaker import Breaker
from cuota.rails.card.protocol import CardAnswer, ChargeRequest
from cuota.rails.card.sandbox import SandboxCardRail
from cuota.rails.unavailable import RailUnavailable
from support.flows.due import settle_all_due
from support.makers import Merchant, Running
from support.pages.beside import beside
from support.pages.visitor import CARD_DECLINED, Visitor, address_of, charges
from support.rails.parts import rail_parts


class Unreliable(SandboxCardRail):
    """The sandbox's card network on a bad line: the charge or its answer is lost."""

    breaks: str | None = None

    async def charge(self, asked: ChargeRequest) -> CardAnswer:
        if self.breaks == "before":
            raise RailUnavailable
        answer = await super().charge(asked)
        if self.breaks in {"after", "altogether"}:
            raise RailUnavailable
        return answer

    async def find_charge(self, asked: ChargeRequest) -> CardAnswer | None:
        if self.breaks == "altogether":
            raise RailUnavailable
        return await super().find_charge(asked)


@pytest.fixture
async def line(service: Running) -> AsyncIterator[tuple[Visitor, Unreliable, Context]]:
    """Open a browser of a process whose connection to the rail may break."""
    rail = Unreliable(*rail_parts(service.context.pool))
    other = beside(service.context, service.clock, card=rail)
    async with other.client() as http:
        yield Visitor(http), rail, other.context


Line = tuple[Visitor, Unreliable, Context]


@pytest.mark.parametrize("breaks", ["before", "altogether"])
async def test_after_a_lost_answer_the_working_page_is_shown_and_the_charge_is_settled_exactly_once(
    service: Running, merchant: Merchant, line: Line, breaks: str
) -> None:
    visitor, rail, context = line
    order = await merchant.create()
    rail.breaks = breaks
    page = await visitor.buy(order)
    assert (page.status, page.heading) == (200, "Your payment is on its way")
    assert page.answer.headers["refresh"] == f"3; url={address_of(order)}"
    assert (await merchant.read(order))["orderStatus"] == "Created"
    rail.breaks = None
    async with service.clock.moved(seconds=16):
        await settle_all_due(context)
    assert (await visitor.open(address_of(order))).outcome == "approved"
    assert (await merchant.read(order))["orderStatus"] == "Approved"
    assert await charges(service, order) == [(2500, True, None)]


async def test_a_charge_that_is_under_way_is_settled_also_if_the_merchant_is_suspended_meanwhile(
    service: Running, merchant: Merchant, line: Line
) -> None:
    visitor, rail, context = line
    order = await merchant.create()
    rail.breaks = "altogether"
    await visitor.buy(order)
    await suspend_merchant(context, merchant.name, hold=False)
    assert (await visitor.open(address_of(order))).heading == "Your payment is on its way"
    rail.breaks = None
    async with service.clock.moved(seconds=16):
        await settle_all_due(context)
    assert (await visitor.open(address_of(order))).outcome == "approved"
    assert await charges(service, order) == [(2500, True, None)]


async def test_nothing_is_looked_up_while_the_first_call_may_still_be_under_way(
    service: Running, merchant: Merchant, line: Line
) -> None:
    visitor, rail, context = line
    order = await merchant.create()
    rail.breaks = "altogether"
    await visitor.buy(order)
    rail.breaks = None
    async with service.clock.moved(seconds=10):
        await settle_all_due(context)
    assert (await merchant.read(order))["orderStatus"] == "Created"


async def test_reloading_the_page_finds_the_lost_answer_and_shows_the_result(
    service: Running, merchant: Merchant, line: Line
) -> None:
    visitor, rail, context = line
    order = await merchant.create()
    rail.breaks = "after"
    assert (await visitor.buy(order)).outcome == "approved"
    rail.breaks = None
    async with service.clock.moved(seconds=16):
        await settle_all_due(context)
    assert (await merchant.read(order))["orderStatus"] == "Approved"
    assert await charges(service, order) == [(2500, True, None)]


async def test_while_a_card_is_charged_the_consumer_cannot_pay_again_or_leave_and_the_order_cannot_expire(
    service: Running, merchant: Merchant, line: Line
) -> None:
    visitor, rail, context = line
    order = await merchant.create()
    shown = await visitor.until("pay", order)
    rail.breaks = "altogether"
    await visitor.send("pay")
    for step in ("pay", "leave"):
        visitor.page = shown
        assert (await visitor.send(step)).heading == "Your payment is on its way"
    async with service.clock.moved(minutes=70):
        await settle_all_due(context)
        assert (await visitor.open(order["redirectUrl"])).heading == "Your payment is on its way"
        assert (await merchant.read(order))["orderStatus"] == "Created"
        rail.breaks = None
        # After these failures, the circuit breaker sends no calls for a while. Let that time pass.
        context.rails.card.breakers[rail.name] = Breaker()
        # The last look-up has just failed, so the next one comes a little later.
        async with service.clock.moved(seconds=16):
            await settle_all_due(context)
    assert (await merchant.read(order))["orderStatus"] == "Approved"
    assert await charges(service, order) == [(2500, True, None)]


async def test_a_card_that_was_declined_while_the_consumer_waited_is_reported_and_another_can_pay(
    service: Running, merchant: Merchant, line: Line
) -> None:
    visitor, rail, context = line
    order = await merchant.create()
    rail.breaks = "altogether"
    await visitor.buy(order, card_number=CARD_DECLINED)
    rail.breaks = None
    async with service.clock.moved(seconds=16):
        await settle_all_due(context)
    page = await visitor.open(address_of(order))
    assert "Your last card was declined by its bank. Try another card" in page.text
    assert (await visitor.send("pay")).outcome == "approved"


async def test_another_browser_sees_only_that_a_payment_is_in_progress(
    service: Running, merchant: Merchant, line: Line, visitor: Visitor
) -> None:
    first, rail, _ = line
    order = await merchant.create()
    rail.breaks = "before"
    await first.buy(order)
    page = await visitor.open(order["redirectUrl"])
    assert page.heading == "Your payment is on its way"
    assert "Jordan" not in page.answer.text
