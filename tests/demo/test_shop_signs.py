"""Payment in a window over the shop's page: what the shop signs, stores and checks, even if the page is closed."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from cuota.core.webhook.signature import pay_signature
from cuota_demo.settings import ShopSettings
from support.demo.shop_browser import Browser, provider
from support.demo.shop_network import RECORD, Network, refusal
from support.demo.told import ENVIRONMENT_TOLD, SIGNING_SECRET, event, headers, raw

MERCHANT = "8a483947-2cb0-4241-9123-f816303a788d"
OURS = {"merchantReference": "AO-1001"}


def stands(status: str, **more: object) -> httpx.Response:
    """The provider's answer about the state of the kettle's order."""
    return httpx.Response(
        200, json={**RECORD, **OURS, "orderStatus": status, "originalAmount": 89.95, **more}
    )


@pytest.fixture
def network() -> Network:
    return Network(provider)


@pytest.fixture
async def shop(tmp_path: Path, network: Network) -> AsyncIterator[Browser]:
    """A shop that signs, and a buyer with a kettle in the cart."""
    environment = {**ENVIRONMENT_TOLD, "SHOP_MERCHANT_ID": MERCHANT, "SHOP_DATA": str(tmp_path)}
    browser = Browser(ShopSettings.from_environment(environment), network)
    await browser.post("/cart", sku="kettle")
    yield browser
    await browser.close()


async def signed(shop: Browser, **fields: str) -> dict[str, Any]:
    answer = await shop.post("/sign", **{"amount": "8995", **fields})
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


async def tell(shop: Browser, told: dict[str, Any]) -> None:
    body = raw(told)
    answer = await shop.http.post("/webhooks", content=body, headers=headers(told, body))
    assert answer.status_code == 204


async def test_the_shop_signs_its_own_cart_and_nothing_that_the_browser_sends(shop: Browser) -> None:
    told = await signed(shop, price="0.01", merchantReference="AO-7", callbackUrl="http://evil.test/")
    assert told["signature"] == pay_signature(SIGNING_SECRET, told["body"].encode())
    body = json.loads(told["body"])
    assert (body["merchantId"], body["merchantReference"], body["capture"]) == (MERCHANT, "AO-1001", False)
    assert body["order"]["amount"] == 89.95
    assert body["order"]["lineItems"] == [
        {"name": "Gooseneck Kettle", "sku": "kettle", "quantity": 1, "price": 89.95}
    ]
    assert body["callbackUrl"] == "http://shop.test/webhooks"
    assert "evil" not in told["body"]


async def test_the_signed_text_contains_the_developer_s_choice_of_window(shop: Browser) -> None:
    express = json.loads((await signed(shop, way="express", display="iframe"))["body"])
    assert (express["checkoutFlow"], express["display"]) == ("express", "iframe")
    card = json.loads((await signed(shop, way="card"))["body"])
    assert (card["integrationType"], card["display"]) == ("virtual_card", "popup")
    usual = json.loads((await signed(shop, way="free", display="none"))["body"])
    assert "integrationType" not in usual


async def test_signing_stores_one_order_which_is_listed_only_after_it_was_opened(
    shop: Browser, network: Network
) -> None:
    network.calls.clear()
    all_at_once = await asyncio.gather(*(signed(shop) for _ in range(5)))
    assert len({json.dumps(told) for told in all_at_once}) == 1
    assert network.calls == []
    order = shop.store.order(1001)
    assert order is not None
    assert (order.status, order.amount, shop.store.order(1002)) == ("New", 8995, None)
    assert "AO-1001" not in (await shop.http.get("/orders")).text
    await tell(shop, event(1, "order.created", "Created", record=OURS))
    assert "AO-1001" in (await shop.http.get("/orders")).text


async def test_a_changed_cart_is_another_order_and_an_outdated_page_gets_an_error(shop: Browser) -> None:
    first = await signed(shop)
    await shop.post("/cart", sku="cup")
    stale = await shop.post("/sign", amount="8995")
    assert stale.status_code == 409
    assert "changed in another window" in stale.json()["problem"]
    assert (await signed(shop, amount="11195"))["number"] == first["number"] + 1


async def test_another_shopper_with_the_same_cart_has_a_separate_order(shop: Browser) -> None:
    first = await signed(shop)
    shop.http.cookies.clear()
    assert (await shop.post("/sign", amount="8995")).json() == {
        "problem": "There is nothing in your cart any more."
    }
    await shop.post("/cart", sku="kettle")
    assert (await signed(shop))["number"] != first["number"]
    for claim in ("", "-", "guess", "None"):
        assert (await shop.http.get(f"/confirm?order=1001&orderId={claim}")).status_code == 404


async def test_the_shop_does_not_sign_without_the_form_s_token(shop: Browser) -> None:
    assert (await shop.http.post("/sign", data={"amount": "8995"})).status_code == 403


async def test_an_order_whose_page_is_gone_is_finished_by_its_webhook(
    shop: Browser, network: Network
) -> None:
    await signed(shop)
    await tell(shop, event(2, "order.approved", record=OURS))
    order = shop.store.order(1001)
    assert order is not None
    assert (order.provider_order_id, order.status) == ("o-1", "Approved")
    assert shop.store.cart(order.session).lines == ()
    network.calls.clear()
    assert "Thank you" in (await shop.http.get("/confirm?order=1001")).text
    assert network.calls == []


@pytest.mark.parametrize(
    "record",
    [{"merchantReference": "AO-9999"}, {"merchantReference": "A-1001"}, {**OURS, "originalAmount": 1}, {}],
    ids=["another order", "not the shop's own", "another amount", "no reference"],
)
async def test_a_webhook_about_something_else_finishes_no_order(
    shop: Browser, record: dict[str, object]
) -> None:
    await signed(shop)
    await tell(shop, event(2, "order.approved", record=record))
    order = shop.store.order(1001)
    assert order is not None
    assert (order.provider_order_id, order.status) == (None, "New")


async def test_a_second_order_at_the_provider_never_replaces_the_first(shop: Browser) -> None:
    await signed(shop)
    await tell(shop, event(1, "order.created", "Created", record=OURS))
    await tell(
        shop,
        {**event(2, "order.declined", "Declined", record={**OURS, "orderId": "o-2"}), "orderId": "o-2"},
    )
    order = shop.store.order(1001)
    assert order is not None
    assert (order.provider_order_id, order.status) == ("o-1", "Created")


async def test_a_result_reported_by_the_page_must_be_confirmed_by_the_provider(
    shop: Browser, network: Network
) -> None:
    await signed(shop)
    network.answers = [stands("Approved", merchantReference="AO-1002")]
    assert "not finished" in (await shop.http.get("/confirm?order=1001&orderId=o-1")).text
    order = shop.store.order(1001)
    assert order is not None
    assert order.provider_order_id is None
    network.answers = [refusal("order_not_found", 404)]
    assert "not finished" in (await shop.http.get("/confirm?order=1001&orderId=o-9")).text
    network.answers = [stands("Approved")]
    assert "Thank you" in (await shop.http.get("/confirm?order=1001&orderId=o-1")).text
    assert shop.store.cart(order.session).lines == ()


@pytest.mark.parametrize(
    ("closed", "status", "again"),
    [
        ("closed_by_customer", "Created", True),
        ("closed_by_customer", "Abandoned", False),
        ("declined", "Declined", False),
        ("session_expired", "Created", False),
    ],
)
async def test_a_second_attempt_opens_the_same_order_while_that_is_open_and_a_new_order_afterwards(
    shop: Browser, network: Network, closed: str, status: str, *, again: bool
) -> None:
    first = await signed(shop)
    await tell(shop, event(1, "order.created", "Created", record=OURS))
    network.answers = [stands(status)]
    second = await signed(shop, closed=closed, number="1001")
    assert (second == first) is again
    assert await signed(shop) == second


async def test_if_the_window_is_closed_after_the_payment_the_shop_shows_the_order(
    shop: Browser, network: Network
) -> None:
    await signed(shop)
    await tell(shop, event(1, "order.created", "Created", record=OURS))
    network.answers = [stands("Approved")]
    for _ in range(2):  # the second time, the cart is already empty
        told = await signed(shop, closed="closed_by_customer", number="1001")
        assert told == {"next": "/confirm?order=1001"}


async def test_a_shopper_cannot_end_another_shopper_s_order(shop: Browser) -> None:
    first = await signed(shop)
    mine = dict(shop.http.cookies)
    shop.http.cookies.clear()
    answer = await shop.post("/sign", amount="8995", closed="declined", number=str(first["number"]))
    assert answer.status_code == 404
    shop.http.cookies.clear()
    shop.http.cookies.update(mine)
    assert await signed(shop) == first


async def test_an_unreachable_provider_changes_nothing_about_a_closed_window(
    shop: Browser, network: Network
) -> None:
    first = await signed(shop)
    await tell(shop, event(1, "order.created", "Created", record=OURS))
    network.answers = [httpx.ConnectError("down")]
    assert await signed(shop, closed="closed_by_customer", number="1001") == first


async def test_the_pages_allow_scripts_calls_and_frames_of_the_provider_only(shop: Browser) -> None:
    page = await shop.http.get("/cart")
    policy = page.headers["Content-Security-Policy"].split("; ")
    assert {
        "script-src 'self' https://pay.test",
        "connect-src 'self' https://pay.test",
        "frame-src https://pay.test",
    } <= set(policy)
    assert "unsafe" not in page.headers["Content-Security-Policy"]
    assert page.text.count("<script") == page.text.count('<script defer src="/static/shop.js">') == 1
    assert 'data-sdk="https://pay.test/v1/pay.js"' in page.text
    assert "Continue" in page.text


async def test_a_shop_that_cannot_sign_offers_only_the_redirect(settings: ShopSettings) -> None:
    browser = Browser(settings, Network(provider))
    await browser.post("/cart", sku="kettle")
    page = await browser.http.get("/cart")
    assert "Continue to pay in four" in page.text
    assert "<pay-button" not in page.text
    assert "<script" not in page.text
    assert "script-src" not in page.headers["Content-Security-Policy"]
    assert (await browser.post("/sign", amount="8995")).status_code == 404
    await browser.close()
