"""The checkout's pages in a popup and in a frame: which sites may show them, and which results they report."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import pytest

from cuota.flows.webhook.deliver_webhooks import publish_events
from support.makers import Merchant
from support.pages.visitor import ANSWERS, CARD_DECLINED, STEPS, Visitor
from support.signed import SHOP, sdk_body, send, started

FRAME = {"sec-fetch-dest": "iframe"}


def told(page: httpx.Response) -> dict[str, Any]:
    """Return the attributes of <html> that the page's script reads, and the result."""
    opening = re.search(r"<html[^>]*>", page.text)
    assert opening is not None
    facts: dict[str, Any] = {
        name: html.unescape(value) for name, value in re.findall(r'data-pay-(\w+)="([^"]*)"', opening[0])
    }
    result = re.search(r'id="pay-result">(.*?)</script>', page.text, re.DOTALL)
    return {**facts, **({"result": json.loads(result[1])} if result else {})}


def shown(order: dict[str, Any], display: str) -> str:
    return str(order["checkoutUrl"]).replace("display=popup", f"display={display}")


async def open_in(merchant: Merchant, visitor: Visitor, display: str, **more: Any) -> dict[str, Any]:
    order = await started(merchant, **more)
    if display == "iframe":
        visitor.http.headers.update(FRAME)
    await visitor.open(shown(order, display))
    return order


async def walk(visitor: Visitor, **fields: str) -> None:
    """Go through every step to the button, in any kind of window."""
    for step in (*STEPS[:-1], "pay"):
        await visitor.send(
            step, **{name: text for name, text in fields.items() if name in visitor.page.form(step)[1]}
        )


async def test_a_popup_cannot_be_framed_and_keeps_its_opener(merchant: Merchant, visitor: Visitor) -> None:
    order = await open_in(merchant, visitor, "popup")
    page = visitor.page.answer
    assert told(page) == {"token": order["token"], "origin": SHOP, "display": "popup"}
    assert page.headers["cross-origin-opener-policy"] == "unsafe-none"
    assert "frame-ancestors 'none'" in page.headers["content-security-policy"]
    assert page.headers["x-frame-options"] == "DENY"


async def test_a_frame_may_be_shown_only_by_the_merchant_s_origin_and_has_no_cookie(
    merchant: Merchant, visitor: Visitor
) -> None:
    await open_in(merchant, visitor, "iframe")
    page = visitor.page.answer
    assert f"frame-ancestors {SHOP};" in page.headers["content-security-policy"] + ";"
    assert "x-frame-options" not in page.headers
    assert not visitor.http.cookies
    assert "k" in parse_qs(urlsplit(str(page.url)).query)


async def test_an_order_of_the_redirect_integration_cannot_be_framed(
    merchant: Merchant, visitor: Visitor
) -> None:
    order = await merchant.create()
    visitor.http.headers.update(FRAME)
    await visitor.open(f"{order['redirectUrl']}&display=iframe")
    assert "frame-ancestors 'none'" in visitor.page.answer.headers["content-security-policy"]
    assert told(visitor.page.answer) == {}


@pytest.mark.parametrize("display", ["popup", "iframe"])
async def test_after_all_steps_the_page_gets_the_result(
    merchant: Merchant, visitor: Visitor, display: str
) -> None:
    order = await open_in(merchant, visitor, display)
    await walk(visitor)
    end = told(visitor.page.answer)
    assert end["outcome"] == "complete"
    assert end["result"]["orderId"] == order["orderId"]
    assert end["result"]["customer"]["email"] == ANSWERS["email"]
    assert bool(visitor.http.cookies) == (display == "popup")


async def test_a_text_in_the_result_cannot_break_out_of_its_script(
    merchant: Merchant, visitor: Visitor
) -> None:
    await open_in(merchant, visitor, "popup")
    await walk(visitor, address_line1="</script><script>alert(1)//")
    assert "<script>alert" not in visitor.page.answer.text
    assert told(visitor.page.answer)["result"]["customer"]["address1"] == "</script><script>alert(1)//"


async def test_leaving_reports_to_the_page_and_stays_in_the_window(
    merchant: Merchant, visitor: Visitor
) -> None:
    order = await open_in(merchant, visitor, "popup")
    await visitor.send("leave")
    assert visitor.page.left is None
    end = told(visitor.page.answer)
    assert (end["outcome"], end["message"]) == ("closed", "closed_by_customer")
    assert (await merchant.read(order))["orderStatus"] == "Abandoned"


async def test_three_declined_cards_report_declined_to_the_page(merchant: Merchant, visitor: Visitor) -> None:
    await open_in(merchant, visitor, "iframe")
    await walk(visitor, card_number=CARD_DECLINED)
    for _ in range(2):
        await visitor.send("pay", card_number=CARD_DECLINED)
    end = told(visitor.page.answer)
    assert (end["outcome"], end["message"]) == ("closed", "declined")


async def test_an_expired_order_reports_its_expiry_to_the_page(merchant: Merchant, visitor: Visitor) -> None:
    await open_in(merchant, visitor, "popup")
    async with merchant.service.clock.moved(minutes=61):
        await visitor.open(str(visitor.page.answer.url))
        end = told(visitor.page.answer)
    assert (end["outcome"], end["message"]) == ("closed", "session_expired")


async def test_a_frame_s_address_does_not_work_outside_a_frame(merchant: Merchant, visitor: Visitor) -> None:
    await open_in(merchant, visitor, "iframe")
    address = str(visitor.page.answer.url)
    await visitor.send("phone")
    found = await visitor.http.get(address, headers={"sec-fetch-dest": "document"})
    assert found.status_code == 404
    assert told(found) == {}


async def test_after_the_right_code_the_frame_s_earlier_address_is_refused(
    merchant: Merchant, visitor: Visitor
) -> None:
    await open_in(merchant, visitor, "iframe")
    address = str(visitor.page.answer.url)
    await visitor.send("phone")
    await visitor.send("code")
    assert (await visitor.http.get(address)).status_code == 404
    assert visitor.page.heading == "Your details"


async def test_a_finished_order_that_is_opened_again_reports_its_result_without_personal_data(
    merchant: Merchant, visitor: Visitor, visit: Callable[..., Visitor]
) -> None:
    order = await open_in(merchant, visitor, "popup")
    await walk(visitor)
    other = visit()
    await other.open(shown(order, "popup"))
    end = told(other.page.answer)
    assert end["outcome"] == "complete"
    assert end["result"] == {"customer": {}, "orderId": order["orderId"]}


async def test_the_express_flow_asks_for_a_shipping_address_and_shows_it_everywhere(
    merchant: Merchant, visitor: Visitor
) -> None:
    order = await open_in(merchant, visitor, "popup", checkoutFlow="express", capture=False)
    for step in ("phone", "code", "details"):
        await visitor.send(step)
    assert "Step 4 of 5" in visitor.page.text
    assert visitor.page.form("shipping")[1]["address_line1"] == ANSWERS["address_line1"]
    await visitor.send("shipping", recipient="")
    assert visitor.page.status == 400
    elsewhere = {
        "recipient": "Grandma Rivera",
        "address_line1": "9 Elm Street",
        "city": "Boise",
        "state": "ID",
    }
    await visitor.send("shipping", **elsewhere, postcode="83702")
    assert "Grandma Rivera" in visitor.page.text
    await visitor.send("pay")
    expected = {
        "name": "Grandma Rivera", "line1": "9 Elm Street", "line2": "", "city": "Boise", "state": "ID",
        "postalCode": "83702", "country": "US",
    }  # fmt: skip
    assert told(visitor.page.answer)["result"]["shippingAddress"] == expected
    assert (await merchant.read(order))["shippingAddress"] == expected
    await publish_events(merchant.service.context)
    events = (await merchant.http.get("/events")).json()["events"]
    approved = next(event for event in events if event["type"] == "order.approved")
    assert approved["order"]["shippingAddress"] == expected
    created = next(event for event in events if event["type"] == "order.created")
    assert "shippingAddress" not in created["order"]


async def test_an_express_order_cannot_be_paid_without_a_shipping_address(
    merchant: Merchant, visitor: Visitor
) -> None:
    await open_in(merchant, visitor, "popup", checkoutFlow="express")
    for step in ("phone", "code", "details"):
        await visitor.send(step)
    action, fields = visitor.page.form("shipping")
    answer = await visitor.http.post(
        action.replace("/shipping", "/pay"), data={**ANSWERS, "csrf": fields["csrf"], "agreement_hash": "x"}
    )
    assert answer.status_code == 409


async def test_a_virtual_card_is_shown_only_to_the_browser_that_paid(
    merchant: Merchant, visitor: Visitor, visit: Callable[..., Visitor]
) -> None:
    order = await open_in(merchant, visitor, "popup", integrationType="virtual_card")
    await walk(visitor)
    end = told(visitor.page.answer)
    assert visitor.page.answer.headers["cache-control"] == "no-store"
    assert end["result"]["card"]["number"].isdigit()
    assert end["result"]["cardholder"]["name"] == "Jordan Rivera"
    await visitor.open(shown(order, "popup"))
    assert told(visitor.page.answer)["result"]["card"] == end["result"]["card"]
    other = visit()
    await other.open(shown(order, "popup"))
    assert "card" not in told(other.page.answer)["result"]


async def test_a_page_that_navigated_to_the_checkout_gets_the_browser_back(
    merchant: Merchant, visitor: Visitor
) -> None:
    order = await open_in(merchant, visitor, "redirect")
    await visitor.send("leave")
    assert visitor.page.left == f"{SHOP}/?token={order['token']}&orderId={order['orderId']}"


async def test_the_result_goes_to_the_origin_of_the_last_request(
    merchant: Merchant, visitor: Visitor
) -> None:
    body = json.dumps(sdk_body(merchant)).encode()
    first = (await send(merchant, body)).json()
    www = "http://www.shop.example"
    assert (await send(merchant, body, origin=www)).json()["orderId"] == first["orderId"]
    await visitor.open(shown(first, "popup"))
    assert told(visitor.page.answer)["origin"] == www
    await send(merchant, body, origin=None)
    await visitor.open(shown(first, "popup"))
    assert told(visitor.page.answer)["origin"] == www
