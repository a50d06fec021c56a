"""An order that waits for a person, in a popup, in a frame, by the gateway, by a shop system, and for a virtual card."""

from __future__ import annotations

import html
import re
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from support import reviews
from support.flows.due import settle_all_due
from support.makers import Merchant, Running
from support.pages.visitor import STEPS, Visitor, charges
from support.phones import phone_number
from support.signed import sdk_body, send, started

FRAME = {"sec-fetch-dest": "iframe"}


def told(page: httpx.Response) -> dict[str, str]:
    """Return the attributes of <html> that the page's script reads."""
    opening = re.search(r"<html[^>]*>", page.text)
    assert opening is not None
    return {name: html.unescape(value) for name, value in re.findall(r'data-pay-(\w+)="([^"]*)"', opening[0])}


async def waits_in(merchant: Merchant, visitor: Visitor, display: str, **more: Any) -> dict[str, Any]:
    """Open a checkout of the merchant's page in a window of this kind, and pay with the test name."""
    order = await started(merchant, **more)
    if display == "iframe":
        visitor.http.headers.update(FRAME)
    await visitor.open(str(order["checkoutUrl"]).replace("display=popup", f"display={display}"))
    await visitor.send("phone", phone=phone_number())
    await visitor.send("code")
    await visitor.send("details", surname="Refertest")
    assert (await visitor.send("pay")).outcome == "referred"
    return order


@pytest.mark.parametrize("display", ["popup", "iframe"])
async def test_the_window_stays_open_reports_nothing_and_pays_after_an_approval(
    service: Running, merchant: Merchant, visitor: Visitor, display: str
) -> None:
    order = await waits_in(merchant, visitor, display)
    page = visitor.page.answer
    # Neither a result nor an end: onComplete and onClose are not called.
    assert set(told(page)) == {"token", "origin", "display"}
    seconds, _, again = page.headers["refresh"].partition("; url=")
    assert seconds == "20"
    assert ("k" in parse_qs(urlsplit(again).query)) == (display == "iframe")
    assert (await visitor.open(again)).outcome == "referred"
    await reviews.approve(service, order)
    assert (await visitor.open(again)).heading == "Review and pay"
    end = told((await visitor.send("pay")).answer)
    assert end["outcome"] == "complete"
    assert len(await charges(service, order)) == 1


async def test_a_decline_is_reported_to_the_page_that_opened_the_window(
    service: Running, merchant: Merchant, visitor: Visitor
) -> None:
    order = await waits_in(merchant, visitor, "popup")
    again = visitor.page.answer.headers["refresh"].partition("; url=")[2]
    await reviews.decline(service, order)
    end = told((await visitor.open(again)).answer)
    assert (end["outcome"], end["message"]) == ("closed", "declined")


async def test_opening_the_same_signed_request_again_shows_the_order_that_waits(
    merchant: Merchant, visitor: Visitor
) -> None:
    order = await waits_in(merchant, visitor, "popup")
    again = (await send(merchant, sdk_body(merchant))).json()
    assert (again["orderId"], again["orderStatus"]) == (order["orderId"], "Created")
    assert (await visitor.open(str(again["checkoutUrl"]))).outcome == "referred"


async def test_close_checkout_of_the_shop_abandons_an_order_that_waits(
    service: Running, merchant: Merchant, visitor: Visitor
) -> None:
    order = await waits_in(merchant, visitor, "popup")
    assert (await send(merchant, sdk_body(merchant), "/leave")).json()["orderStatus"] == "Abandoned"
    assert (await reviews.stored(service, order))["state"] == "closed"


async def test_an_order_of_a_virtual_card_is_never_referred(merchant: Merchant, visitor: Visitor) -> None:
    order = await started(merchant, integrationType="virtual_card", capture=False)
    await visitor.open(str(order["checkoutUrl"]))
    for step in STEPS[:-1]:
        await visitor.send(step, **({"surname": "Refertest"} if step == "details" else {}))
    assert (await visitor.send("pay")).outcome == "declined"


async def test_an_express_order_keeps_its_shipping_address_while_it_waits(
    service: Running, merchant: Merchant, visitor: Visitor
) -> None:
    order = await started(merchant, checkoutFlow="express")
    await visitor.open(str(order["checkoutUrl"]))
    await visitor.send("phone", phone=phone_number())
    await visitor.send("code")
    await visitor.send("details", surname="Refertest")
    await visitor.send("shipping", address_line1="9 Other Street")
    assert (await visitor.send("pay")).outcome == "referred"
    await reviews.approve(service, order)
    await visitor.open(visitor.page.answer.headers["refresh"].partition("; url=")[2])
    assert (await visitor.send("pay")).outcome == "approved"
    assert (await merchant.read(order))["shippingAddress"]["line1"] == "9 Other Street"


async def test_a_shop_system_sees_a_checkout_that_is_created_until_the_answer(
    service: Running, merchant: Merchant, visitor: Visitor
) -> None:
    body = {
        "shopper": {},
        "order": {"reference": "S-1", "amount": "100.00", "currency": "USD"},
        "config": {"redirect_uri": "http://127.0.0.1:9/back"},
    }
    made = (await merchant.http.post("/checkouts", json=body)).json()
    order = {"orderId": made["id"], "redirectUrl": made["uri"]}
    await visitor.buy(order, surname="Refertest", phone=phone_number())
    assert visitor.page.outcome == "referred"
    assert (await merchant.http.get(f"/checkouts/{made['id']}")).json()["state"] == "created"
    await reviews.decline(service, order)
    assert (await merchant.http.get(f"/checkouts/{made['id']}")).json()["state"] == "declined"
    page = await visitor.open(urlsplit(visitor.page.answer.headers["refresh"].partition("; url=")[2]).path)
    assert page.left is not None
    assert "result=declined" in page.left


async def test_the_record_says_until_when_only_while_the_order_waits_and_events_never_do(
    service: Running, merchant: Merchant, visitor: Visitor
) -> None:
    order = await merchant.create()
    assert "reviewUntilDateTime" not in await merchant.read(order)
    await visitor.buy(order, surname="Refertest", phone=phone_number())
    record = await merchant.read(order)
    stored = await reviews.stored(service, order)
    assert record["reviewUntilDateTime"].startswith(stored["answer_by"].isoformat()[:19])
    listed = (await merchant.http.get("/orders?limit=1")).json()["data"][0]
    assert listed["reviewUntilDateTime"] == record["reviewUntilDateTime"]
    async with service.clock.moved(minutes=51):
        await settle_all_due(service.context)
    assert "reviewUntilDateTime" not in await merchant.read(order)
