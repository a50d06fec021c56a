"""The sandbox's inbox shows the messages to consumers, without a login."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any
from uuid import uuid4

import httpx
import pytest

from cuota.core.message import Message
from cuota.rails.message import SandboxMessageRail
from cuota.rails.unavailable import RailUnavailable
from cuota.run import runtime
from cuota.web.pages.inbox import parts
from support.makers import Clock, Merchant, Running
from support.pages.beside import Beside, beside
from support.pages.visitor import Page, Visitor
from support.rails.parts import rail_parts

OWN = "https://pay.example"


@pytest.fixture
async def quiet(service: Running, own_database: dict[str, Any]) -> AsyncIterator[Beside]:
    """A service with an inbox that no other test uses."""
    async with runtime.opened(service.settings, own_database, pool_size=4) as context:
        yield beside(context, Clock())


async def get(running: Running, query: str = "") -> Page:
    async with running.client() as http:
        return Page(await http.get(f"/sandbox/inbox{query}"))


async def told(running: Running, text: str = "It is due.", **more: Any) -> None:
    given = {
        "phone": None,
        "email": "jordan@mail.example",
        "sender": "Pay",
        "subject": "Your payment",
        **more,
    }
    await running.context.rails.message.send(Message(uuid4(), text=text, **given))


async def test_an_empty_inbox_says_how_messages_get_there(quiet: Beside) -> None:
    page = await get(quiet)
    assert (page.status, page.heading) == (200, "Inbox")
    assert "Nothing is here. Open a checkout" in page.text


async def test_a_code_requested_in_the_checkout_is_in_the_inbox_and_the_checkout_links_to_the_inbox(
    merchant: Merchant, visitor: Visitor
) -> None:
    checkout = await visitor.until("code", await merchant.create(), phone="917 555 0111")
    address = checkout.link("inbox")
    assert address == "/sandbox/inbox"
    page = await get(merchant.service, "?to=%2B1+917-555-0111")
    assert "Text to (917) 555-0111" in page.text
    assert "123456 is your Pay in four code." in page.text


async def test_the_newest_message_is_first_and_each_page_has_fifty(quiet: Beside) -> None:
    for n in range(120):
        await told(quiet, f"message <{n}>")
    page, seen, sizes = await get(quiet), [], []
    while True:
        here = [int(n) for n in re.findall(r"message <(\d+)>", page.text)]
        sizes.append(len(here))
        seen += here
        if "Older messages" not in page.text:
            break
        page = await get(quiet, page.link("Older messages").removeprefix("/sandbox/inbox"))
    assert seen == list(range(119, -1, -1))
    assert sizes == [50, 50, 20]
    assert page.link("Back to the newest") == "/sandbox/inbox"


async def test_the_filter_for_one_consumer_applies_to_every_page(quiet: Beside) -> None:
    for n in range(60):
        await told(quiet, f"ours {n}.")
        await told(quiet, "another's", email="other+1@mail.example")
    page = await get(quiet, "?to=JORDAN@mail.example")
    assert (page.text.count("ours"), page.text.count("another's")) == (50, 0)
    older = await get(quiet, page.link("Older messages").removeprefix("/sandbox/inbox"))
    assert (older.text.count("ours"), older.text.count("another's")) == (10, 0)
    # A plus sign in a mail address must survive in the page's links.
    other = await get(quiet, (await get(quiet)).link("other+1@mail.example").removeprefix("/sandbox/inbox"))
    assert (other.text.count("ours"), other.text.count("another's")) == (0, 50)
    nobody = await get(quiet, "?to=nobody@mail.example")
    assert "Nothing was sent to nobody@mail.example." in nobody.text
    assert nobody.link("Show everyone") == "/sandbox/inbox"


@pytest.mark.parametrize(
    "query", ["?before=x", "?before=-1", f"?before={9 * 10**18}", f"?before={'9' * 40}", "?to=", "?to=%00"]
)
async def test_an_unreadable_query_shows_the_newest_messages(quiet: Beside, query: str) -> None:
    await told(quiet)
    page = await get(quiet, query)
    assert page.status == 200
    assert "It is due." in page.text


async def test_a_message_is_text_and_never_markup_and_the_page_has_no_script(quiet: Beside) -> None:
    bad = "<script>alert(1)</script><img src=x onerror=alert(1)>"
    await told(quiet, bad, subject=bad, email=f'"{bad}"@mail.example')
    page = await get(quiet)
    assert page.text.count("<script>alert(1)</script>") == 3
    html = page.answer.text
    assert "<script" not in html
    assert "<img" not in html
    query = await get(quiet, "?to=%22%3E%3Cscript%3Ealert(1)%3C/script%3E")
    assert "<script" not in query.answer.text
    policy = page.answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert page.answer.headers["cache-control"] == "no-store"


async def test_only_an_address_of_this_service_is_a_link_on_the_page(quiet: Beside) -> None:
    own = quiet.settings.public_url
    await told(
        quiet, f"See {own}/account?a=1&b=2. Not https://evil.example/account nor {own}.evil.example/x."
    )
    page = await get(quiet)
    linked = [href for href in page.seen.links if href.startswith("http")]
    assert linked == [f"{own}/account?a=1&b=2"]
    assert "https://evil.example/account" in page.text


@pytest.mark.parametrize(
    ("text", "links"),
    [
        (f"{OWN}", [OWN]),
        (f"at {OWN}/account.", [f"{OWN}/account"]),
        (f"({OWN}/a?b=c#d), or {OWN}?x", [f"{OWN}/a?b=c#d", f"{OWN}?x"]),
        (f"{OWN}@evil.example/", []),
        (f"{OWN}:8443/x", []),
        (f"{OWN}.evil.example/", []),
        ("http://pay.example/account", []),
        ("HTTPS://PAY.EXAMPLE/account", []),
        ("javascript:alert(1)", []),
        (f"https://evil.example/?{OWN}/x", []),
        (f'{OWN}/x" onclick="alert(1)', [f"{OWN}/x"]),
        ("", []),
    ],
)
def test_only_addresses_of_the_service_s_origin_become_links_and_no_text_is_lost(
    text: str, links: list[str]
) -> None:
    pieces = parts(text, OWN)
    assert [piece for piece, link in pieces if link] == links
    assert "".join(piece for piece, _ in pieces) == text


@pytest.mark.parametrize("method", ["GET", "HEAD"])
async def test_production_has_no_inbox(service: Running, method: str) -> None:
    production = beside(
        service.context, Clock(), settings=replace(service.settings, environment="production")
    )
    async with production.client() as http:
        answer = await http.request(method, "/sandbox/inbox", headers={"x-no-contract": "1"})
    assert answer.status_code == 404


async def test_an_inbox_that_gets_no_messages_says_why(quiet: Beside) -> None:
    live = beside(quiet.context, Clock(), settings=replace(quiet.settings, message_rail="live"))
    assert "Messages are sent by the rail that CUOTA_MESSAGE_RAIL names" in (await get(live)).text


async def test_if_a_text_cannot_be_sent_the_error_is_beside_the_number_and_the_text_can_be_requested_again(
    merchant: Merchant, visit: Any
) -> None:
    context = merchant.service.context
    broken = asyncio.Event()

    class Breaking(SandboxMessageRail):
        async def send_code(self, phone: str, code: str, sender: str) -> None:
            if broken.is_set():
                raise RailUnavailable("the text hook answered 500")
            await super().send_code(phone, code, sender)

    beside_it = beside(context, merchant.service.clock, message=Breaking(*rail_parts(context.pool)))
    async with beside_it.client() as http:
        visitor = Visitor(http)
        order = await merchant.create()
        await visitor.until("phone", order)
        broken.set()
        page = await visitor.send("phone")
        assert (page.status, page.heading) == (400, "Pay in four")
        assert "We could not send a text to this number right now." in page.text
        broken.clear()
        assert (await visitor.send("phone")).heading == "Enter your code"
        broken.set()
        again = await visitor.send("resend")
        assert (again.status, again.heading) == (400, "Enter your code")
        assert "We could not send a text" in again.text
        assert isinstance(again.answer, httpx.Response)


@pytest.mark.parametrize(
    ("body", "headers", "status"),
    [
        ("&".join(f"a{n}=1" for n in range(40)), {}, 400),
        ("to=2125550199&text=STOP", {"origin": "https://evil.example"}, 403),
        ("to=2125550199&text=STOP", {"sec-fetch-site": "cross-site"}, 403),
        ("x" * 20_000, {}, 413),
    ],
)
async def test_the_inbox_accepts_an_answer_only_from_its_own_form(
    quiet: Beside, body: str, headers: dict[str, str], status: int
) -> None:
    given = {"content-type": "application/x-www-form-urlencoded", **headers}
    async with quiet.client() as http:
        assert (await http.post("/sandbox/inbox", content=body, headers=given)).status_code == status
