"""The sandbox's page in the merchant's dashboard: the clock moves for everybody, and production has no such page."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from cuota.core.desk.role import Role
from cuota.core.sandbox import TEST_CARDS
from cuota.run.travel import traveling
from support.makers import Clock, Merchant, Running
from support.pages.beside import beside
from support.pages.staff import Staff
from support.time.sandbox import Sandbox

PAGE = "/desk/sandbox"


@asynccontextmanager
async def entered(shop: Merchant, role: Role = Role.OWNER) -> AsyncIterator[Staff]:
    staff = Staff(shop.service.client(), shop)
    async with AsyncExitStack() as stack:
        stack.push_async_callback(staff.http.aclose)
        await staff.enter(role)
        yield staff


async def still(sandbox: Sandbox, staff: Staff, seconds: float = 60) -> str:
    """Reload the page, as the browser does, until the clock is no longer being moved. Return its text."""
    async with asyncio.timeout(seconds):
        while "is being moved" in (await staff.open(PAGE)).text:  # noqa: ASYNC110 - another process may move it
            await asyncio.sleep(0.2)
    return staff.page.text


@pytest.mark.parametrize(
    ("by", "span"), [("1h", timedelta(hours=1)), ("1d", timedelta(days=1)), ("1w", timedelta(weeks=1))]
)
async def test_a_button_moves_the_clock_of_the_whole_sandbox_by_its_span(
    sandbox: Sandbox, by: str, span: timedelta
) -> None:
    async with entered(sandbox.merchant) as staff:
        await staff.open(PAGE)
        assert "every merchant" in staff.page.text
        before = await sandbox.now()
        await staff.press("sandbox", by=by)
        text = await still(sandbox, staff)
        assert span <= await sandbox.now() - before < span + timedelta(minutes=2)
        assert "ahead of the real time" in text


async def test_while_the_clock_moves_due_work_happens_at_its_own_time(sandbox: Sandbox) -> None:
    order = await sandbox.merchant.create("80.00")
    expiry = datetime.fromisoformat(order["expiryDateTime"])
    async with entered(sandbox.merchant) as staff:
        assert "1 order" in (await staff.open(PAGE)).text
        page = await staff.press("sandbox", by="next")
        await still(sandbox, staff)
        assert page.status == 200
        events = dict(await sandbox.events(order))
        assert abs(events["order.abandoned"] - expiry) < timedelta(milliseconds=1)
        assert await sandbox.now() - expiry < timedelta(minutes=2)
        assert "sandbox.advance" in (await staff.open("/desk/audit?action=sandbox.")).text


async def test_if_nothing_is_scheduled_the_clock_does_not_move(sandbox: Sandbox) -> None:
    async with entered(sandbox.merchant) as staff:
        await staff.open(PAGE)
        before = await sandbox.now()
        page = await staff.press("sandbox", by="next")
        assert (page.status, "Nothing is scheduled, so the clock was not moved." in page.text) == (400, True)
        assert await sandbox.now() - before < timedelta(minutes=1)


@pytest.mark.parametrize("by", ["", "2w", "-1d"], ids=["none", "two weeks", "backward"])
async def test_a_span_that_no_button_has_is_refused(sandbox: Sandbox, by: str) -> None:
    await sandbox.merchant.create("80.00")
    async with entered(sandbox.merchant) as staff:
        await staff.open(PAGE)
        page = await staff.press("sandbox", by=by)
        assert (page.status, "Choose how far to move the clock." in page.text) == (400, True)
        assert "the real time" in page.text


async def test_while_a_command_moves_the_clock_the_page_says_so_and_does_not_move_it(
    sandbox: Sandbox,
) -> None:
    async with entered(sandbox.merchant) as staff:
        await staff.open(PAGE)
        form = staff.page.form("sandbox")
        async with traveling(sandbox.service.settings, sandbox.where):
            shown = await staff.http.get(PAGE)
            assert "is being moved" in shown.text
            assert shown.headers["refresh"].startswith("2; url=/desk/sandbox")
            refused = await staff.http.post(form[0], data={**form[1], "by": "1d"})
            assert refused.status_code == 400
            assert "moving the clock right now" in refused.text
        assert "the real time" in await still(sandbox, staff)


async def test_the_page_has_the_test_cards_and_the_inbox(merchant: Merchant) -> None:
    async with entered(merchant) as staff:
        text = (await staff.open(PAGE)).text
        assert all(card.number in text and card.meaning in text for card in TEST_CARDS)
        assert "/sandbox/inbox" in staff.page.seen.links
        assert "A fork is a copy of the whole sandbox" in text


@pytest.mark.parametrize("role", list(Role))
async def test_owners_admins_and_developers_see_the_page_in_their_menu(
    merchant: Merchant, role: Role
) -> None:
    async with entered(merchant, role) as staff:
        seen = role in {Role.OWNER, Role.ADMIN, Role.DEVELOPER}
        assert (PAGE in staff.page.seen.links) is seen
        assert (await staff.http.get(PAGE)).status_code == (200 if seen else 403)


@pytest.mark.parametrize("root", ["/desk", "/operator"])
@pytest.mark.parametrize(("method", "path"), [("GET", ""), ("POST", ""), ("GET", "/rewind")])
async def test_production_has_no_such_page(service: Running, method: str, path: str, root: str) -> None:
    settings = replace(service.settings, environment="production")
    async with beside(service.context, Clock(), settings=settings).client() as http:
        answer = await http.request(method, f"{root}/sandbox{path}", data={"by": "1d"})
        assert answer.status_code == 404
