"""A shop system's customer completes the pages, and the browser returns with `result` and `checkoutId`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import UUID

import httpx
import pytest

from cuota.flows.checkout.leave_checkout import lapse_order
from support.gateway import SHOP, form, form_fields, post_form, signed
from support.makers import Merchant
from support.pages.visitor import CARD_DECLINED, Page, Visitor, address_of

BACK = "http://127.0.0.1:9/back?cart=7#there"


async def begun(merchant: Merchant) -> dict[str, Any]:
    """Start a checkout of a shop system."""
    order = {"reference": "S-7", "amount": "100.00", "currency": "USD"}
    answer = await merchant.http.post("/checkouts", json={"order": order, "config": {"redirect_uri": BACK}})
    assert answer.status_code == 200, answer.text
    return {"redirectUrl": answer.json()["uri"], "orderId": answer.json()["id"]}


def assert_back(address: str | None, order: dict[str, Any], result: str) -> None:
    assert address == f"http://127.0.0.1:9/back?cart=7&result={result}&checkoutId={order['orderId']}#there"


async def read(merchant: Merchant, order: dict[str, Any]) -> str:
    return str((await merchant.http.get(f"/checkouts/{order['orderId']}")).json()["state"])


async def test_after_a_payment_the_result_is_approved(merchant: Merchant, visitor: Visitor) -> None:
    order = await begun(merchant)
    page = await visitor.buy(order)
    assert page.outcome == "approved"
    assert_back(page.link("Back to"), order, "approved")
    assert await read(merchant, order) == "approved"
    # The result is that of the payment, whatever the merchant does with the money afterwards.
    await merchant.move(order, "void", "100.00")
    assert_back((await visitor.open(address_of(order))).link("Back to"), order, "approved")


async def test_after_a_decline_the_result_is_declined(merchant: Merchant, visitor: Visitor) -> None:
    order = await begun(merchant)
    page = await visitor.buy(order, surname="Declinetest")
    assert page.outcome == "declined"
    assert_back(page.link("Return to"), order, "declined")
    assert await read(merchant, order) == "declined"


async def test_after_three_declined_cards_the_result_is_declined(
    merchant: Merchant, visitor: Visitor
) -> None:
    order = await begun(merchant)
    page: Page = await visitor.buy(order, card_number=CARD_DECLINED)
    for _ in range(2):
        page = await visitor.send("pay", card_number=CARD_DECLINED)
    assert_back(page.link("Return to"), order, "declined")


async def test_after_leaving_the_result_is_cancelled_then_and_later(
    merchant: Merchant, visitor: Visitor
) -> None:
    order = await begun(merchant)
    await visitor.until("details", order)
    assert_back((await visitor.send("leave")).left, order, "cancelled")
    assert await read(merchant, order) == "cancelled"
    async with merchant.service.clock.moved(hours=2):
        assert_back((await visitor.open(address_of(order))).link("Return to"), order, "cancelled")


async def test_after_the_expiry_the_result_is_expired(merchant: Merchant, visitor: Visitor) -> None:
    order = await begun(merchant)
    await visitor.until("details", order)
    async with merchant.service.clock.moved(minutes=61):
        page = await visitor.open(address_of(order))
        assert page.status == 410
        assert_back(page.link("Back to"), order, "expired")
        context, merchant_id = merchant.service.context, merchant.merchant_id
        await lapse_order(context, merchant_id, UUID(order["orderId"]))
        assert_back((await visitor.open(address_of(order))).link("Return to"), order, "expired")
    assert await read(merchant, order) == "expired"


async def test_leaving_an_expired_page_gives_the_result_expired(merchant: Merchant, visitor: Visitor) -> None:
    order = await begun(merchant)
    await visitor.until("details", order)
    async with merchant.service.clock.moved(minutes=61):
        assert_back((await visitor.send("leave")).left, order, "expired")
    assert await read(merchant, order) == "expired"


async def test_a_browser_of_the_gateway_returns_with_the_order_s_token_and_id(
    merchant: Merchant, visitor: Visitor
) -> None:
    fields = signed(merchant, form_fields(merchant))
    address = (await post_form(merchant, fields)).headers["location"]
    token = httpx.URL(address).params["token"]
    order_id = (await merchant.http.get("/order", params={"token": token})).json()["orderId"]
    page = await visitor.buy({"redirectUrl": address, "orderId": order_id})
    assert page.link("Back to") == f"{SHOP}/confirm?order=7&token={token}&orderId={order_id}"
    # Sending the shop's form again leads to the same order, whose page says that it is completed.
    again = (await post_form(merchant, fields)).headers["location"]
    assert again == address
    assert (await visitor.open(again)).outcome == "approved"


async def test_a_finished_order_of_the_gateway_shows_a_new_browser_no_data(
    merchant: Merchant, visit: Callable[..., Visitor]
) -> None:
    address = (await form(merchant)).headers["location"]
    token = httpx.URL(address).params["token"]
    order_id = (await merchant.http.get("/order", params={"token": token})).json()["orderId"]
    await visit().buy({"redirectUrl": address, "orderId": order_id})
    assert (await visit().open(address)).status == 410


@pytest.mark.parametrize("result", ["approved", "cancelled"])
async def test_an_order_of_the_rest_api_returns_with_its_token_and_id_and_without_a_result(
    merchant: Merchant, visitor: Visitor, result: str
) -> None:
    order = await merchant.create()
    if result == "approved":
        address = (await visitor.buy(order)).link("Back to")
    else:
        await visitor.open(order["redirectUrl"])
        address = (await visitor.send("leave")).left or ""
    params = httpx.URL(address).params
    assert (params["token"], params["orderId"]) == (order["token"], order["orderId"])
    assert "result" not in params
