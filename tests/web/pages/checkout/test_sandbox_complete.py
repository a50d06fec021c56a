"""`cuota sandbox complete` completes a checkout over the hosted pages, for a merchant's own CI."""

from __future__ import annotations

import asyncio
import sys
from typing import Any
from urllib.parse import parse_qs, urlsplit
from uuid import UUID, uuid4

import httpx
import pytest

from cuota.commands import checkout_walker
from cuota.commands.checkout_walker import CannotWalk, walk
from support.makers import Merchant, Running
from support.pages.visitor import CARD_DECLINED, Visitor
from support.phones import phone_number


async def complete(url: str, outcome: str) -> str:
    return await asyncio.to_thread(walk, url, outcome)


@pytest.mark.parametrize(
    ("outcome", "status", "path"),
    [
        ("approved", "Approved", "/confirm"),
        ("declined", "Declined", "/cancel"),
        ("abandoned", "Abandoned", "/cancel"),
    ],
)
async def test_the_checkout_ends_with_the_requested_outcome_at_the_merchant_s_address(
    merchant: Merchant, outcome: str, status: str, path: str
) -> None:
    order = await merchant.create()
    end = urlsplit(await complete(order["redirectUrl"], outcome))
    assert (end.netloc, end.path) == ("127.0.0.1:9", path)
    query = parse_qs(end.query)
    assert (query["token"], query["orderId"]) == ([order["token"]], [order["orderId"]])
    assert (await merchant.read(order))["orderStatus"] == status


async def test_an_order_with_a_fee_many_items_and_a_consumer_is_completed_as_well(merchant: Merchant) -> None:
    order = await merchant.create(
        "100.00", merchantFeeForPaymentPlan="5.00", consumer={"phoneNumber": "4155550166", "surname": "Vandermeer"},
        items=[{"name": f'<a class="primary" href="http://evil.example/{n}">', "quantity": 1, "price": 1} for n in range(50)],
    )  # fmt: skip
    assert "evil" not in await complete(order["redirectUrl"], "approved")


async def mail_of(service: Running, order: dict[str, Any]) -> str:
    """Return the mail address of the consumer who pays an order."""
    row = await service.context.pool.fetchrow(
        "SELECT payer ->> 'email' AS email FROM plans WHERE order_id = $1", UUID(order["orderId"])
    )
    assert row is not None
    return str(row["email"])


async def test_no_two_consumers_get_the_same_mail_address(service: Running, merchant: Merchant) -> None:
    named = {"phoneNumber": phone_number(), "email": "lee@shop.example"}
    orders = [await merchant.create("100.00", **more) for more in ({}, {}, {"consumer": named})]
    for order, phone in zip(orders, (phone_number(), phone_number(), None), strict=True):
        typed = {} if phone is None else {"phone": phone}
        await asyncio.to_thread(walk, order["redirectUrl"], "approved", **typed)
    first, second, third = [await mail_of(service, order) for order in orders]
    assert first != second
    assert third == "lee@shop.example"


async def test_an_error_of_the_command_includes_the_page_s_own_error(merchant: Merchant) -> None:
    order = await merchant.create()
    with pytest.raises(CannotWalk, match="Check the card number"):
        await asyncio.to_thread(walk, order["redirectUrl"], "approved", card_number="4242424242424241")


@pytest.mark.parametrize(("reloads", "said"), [(80, ""), (100, "had no result")])
async def test_the_command_waits_while_a_card_is_charged_for_a_minute_but_not_forever(
    monkeypatch: pytest.MonkeyPatch, reloads: int, said: str
) -> None:
    monkeypatch.setattr(checkout_walker, "PAUSE_SECONDS", 0.0)
    seen = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal seen
        await reader.readuntil(b"\r\n\r\n")
        seen += 1
        more = b"Refresh: 3;url=/checkout/x\r\n" if seen <= reloads else b""
        mark = b'<svg class="mark approved"></svg>' if seen > reloads else b""
        body = b'<p class="sandbox">Sandbox</p><h1>Your bank is confirming</h1>' + mark
        head = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n%b\r\n"
        writer.write(head % (len(body), more) + body)
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/checkout/x"
        if not said:
            assert await complete(url, "approved") == url
            return
        with pytest.raises(CannotWalk, match=said):
            await complete(url, "approved")


async def test_the_command_follows_no_link_that_a_person_must_click() -> None:
    """If the last page only shows a link, a person has to click it, and the command must report that."""
    body = b"""<p class="sandbox">Sandbox</p><svg class="mark approved"></svg><h1>Done</h1>
        <a class="primary" href="http://127.0.0.1:9/confirm">Back to the shop</a>"""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%b" % (len(body), body)
        )
        await writer.drain()
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        with pytest.raises(CannotWalk, match="does not redirect to the merchant automatically"):
            await complete(f"http://127.0.0.1:{port}/checkout/x", "approved")


@pytest.mark.parametrize("spoil", ["unknown", "finished", "expired", "api"])
async def test_for_a_link_that_cannot_be_completed_the_error_says_why(
    service: Running, merchant: Merchant, visitor: Visitor, spoil: str
) -> None:
    order = await merchant.create()
    url, says = order["redirectUrl"], ""
    ahead = 61 if spoil == "expired" else 0
    if spoil == "unknown":
        url, says = f"{url.partition('=')[0]}={uuid4()}", "This payment link is not valid"
    elif spoil == "finished":
        await visitor.buy(order)
        says = "This payment is finished"
    elif spoil == "expired":
        says = "This checkout expired"
    else:
        url, says = f"{service.settings.public_url}/health/live", "not a sandbox checkout"
    async with service.clock.moved(minutes=ahead):
        with pytest.raises(CannotWalk, match=says):
            await complete(url, "approved")


async def test_if_the_requested_outcome_is_impossible_the_error_says_how_the_order_ended(
    service: Running, merchant: Merchant, visitor: Visitor
) -> None:
    order = await merchant.create()
    await visitor.until("pay", order)
    for _ in range(3):
        await visitor.send("pay", card_number=CARD_DECLINED)
    with pytest.raises(CannotWalk, match="This payment is finished"):
        await complete(order["redirectUrl"], "approved")


async def test_an_unreachable_address_is_an_httpx_error_which_the_command_explains() -> None:
    with pytest.raises(httpx.HTTPError):
        await complete("http://127.0.0.1:9/checkout/x?token=y", "approved")


async def _command(*arguments: str) -> tuple[int | None, str, str]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "cuota", "sandbox", "complete", *arguments,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, err = await process.communicate()
    return process.returncode, out.decode(), err.decode()


async def test_the_command_prints_only_the_address_and_exits_with_0(merchant: Merchant) -> None:
    order = await merchant.create()
    code, out, err = await _command(order["redirectUrl"], "--outcome", "approved")
    assert (code, out.count("\n"), err) == (0, 1, "")
    assert out.startswith("http://127.0.0.1:9/confirm?order=7&token=")


async def test_the_command_exits_with_1_and_prints_the_reason_on_standard_error(merchant: Merchant) -> None:
    order = await merchant.create()
    code, out, err = await _command(order["redirectUrl"][:-4], "--outcome", "declined")
    assert (code, out) == (1, "")
    assert "This payment link is not valid" in err
    code, out, err = await _command("http://127.0.0.1:9/", "--outcome", "declined")
    assert (code, out) == (1, "")
    assert "cannot be reached" in err


@pytest.mark.parametrize("consumer", [None, {"phoneNumber": "4155550166"}])
async def test_the_command_types_the_given_phone_number(
    merchant: Merchant, consumer: dict[str, str] | None
) -> None:
    order = await merchant.create("100.00", consumer=consumer)
    await asyncio.to_thread(walk, order["redirectUrl"], "approved", phone="2125550188")
    assert (await merchant.read(order))["orderStatus"] == "Approved"
