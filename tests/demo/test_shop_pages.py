"""Tests the shop's pages without a browser."""

from __future__ import annotations

import json
import uuid
from collections.abc import AsyncIterator, Callable

import httpx
import pytest

from cuota_demo.settings import ShopSettings
from support.demo.shop_browser import Browser, provider
from support.demo.shop_network import MOVED, Answer, Network

Visit = Callable[[Network], Browser]


@pytest.fixture
async def visit(settings: ShopSettings) -> AsyncIterator[Visit]:
    browsers: list[Browser] = []

    def open_shop(network: Network) -> Browser:
        browsers.append(Browser(settings, network))
        return browsers[-1]

    yield open_shop
    for browser in browsers:
        await browser.close()


async def test_the_checkout_redirects_to_the_provider_and_the_return_page_reads_the_order_from_the_provider(
    visit: Visit,
) -> None:
    network = Network(provider)
    browser = visit(network)
    sent = await browser.order()
    assert (sent.status_code, sent.headers["Location"]) == (303, "https://pay.test/c?token=t")
    body = json.loads(network.calls[-1].content)
    assert (body["amount"], body["items"][0]["price"], body["merchantReference"]) == (
        "89.95",
        "89.95",
        "AO-1001",
    )
    page = await browser.http.get("/confirm?order=1001&orderId=another&token=x&status=Approved")
    assert network.calls[-1].url.path == "/order/o-1"
    assert "did not go through" in page.text
    assert "form-action 'self' https://pay.test;" in page.headers["Content-Security-Policy"]


async def test_a_visitor_with_a_guessed_order_number_sees_nothing(visit: Visit) -> None:
    browser = visit(Network(provider))
    await browser.order()
    browser.http.cookies.clear()
    assert (await browser.http.get("/confirm?order=1001&orderId=guess")).status_code == 404
    assert (await browser.http.get("/confirm?order=1001&orderId=o-1")).status_code == 200


async def test_the_cart_is_kept_if_the_provider_is_down(visit: Visit) -> None:
    browser = visit(Network(httpx.ConnectError("down")))
    assert (await browser.order()).headers["Location"] == "/cart"
    page = await browser.http.get("/cart")
    assert "The payment provider cannot be reached; your cart is kept." in page.text
    assert "Gooseneck Kettle" in page.text


async def test_a_form_without_its_token_is_refused(visit: Visit) -> None:
    browser = visit(Network(provider))
    await browser.http.get("/")
    assert (await browser.http.post("/cart", data={"sku": "cup", "csrf": "guess"})).status_code == 403


async def test_a_second_click_on_capture_repeats_the_same_reference_and_a_click_after_success_sends_nothing(
    visit: Visit,
) -> None:
    lost: list[Answer] = [httpx.ReadTimeout("late")] * 3
    done = httpx.Response(200, json=MOVED)
    network = Network(provider)
    browser = visit(network)
    await browser.order()
    network.answers, network.calls = [*lost, done], []
    form = {"reference": str(uuid.uuid4()), "amount": "12.50"}
    await browser.post("/orders/1001/capture", **form)
    assert [each.state for each in browser.store.pending(1001)] == ["pending"]
    await browser.post("/orders/1001/capture", **form)
    await browser.post("/orders/1001/capture", **form)
    assert len(network.calls) == 4
    assert len(set(network.bodies())) == 1
    assert browser.store.pending(1001) == []


@pytest.mark.parametrize("number", ["7", "99999999999999999999999"])
async def test_an_unknown_order_is_a_page_that_says_so(visit: Visit, number: str) -> None:
    page = await visit(Network(provider)).http.get(f"/orders/{number}")
    assert page.status_code == 404
    assert "We cannot find that page" in page.text
