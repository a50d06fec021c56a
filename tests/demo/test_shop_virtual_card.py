"""The shop charges the virtual card that its page got: once, in full, by its card processor. It stores no card
number."""

from __future__ import annotations

import json
import uuid
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from cuota_demo.settings import ShopSettings
from support.demo.shop_browser import Browser
from support.demo.shop_network import MOVED, RECORD, Answer, Network
from support.demo.told import ENVIRONMENT_TOLD, event, headers, raw

MERCHANT = "8a483947-2cb0-4241-9123-f816303a788d"
NUMBER = "4539578763621486"
CARD = {"card": NUMBER, "cvc": "731", "expirationMonth": "11", "expirationYear": "2031"}
APPROVED = {**RECORD, "merchantReference": "AO-1001", "originalAmount": 89.95}


class Provider:
    """A provider with an approved order that can be voided. Its card network gives the answers that the test
    prepares."""

    def __init__(self) -> None:
        self.authorize: Answer = httpx.Response(200, json={"authorizationId": "auth-1", "approved": True})
        self.moves: list[Answer] = []
        self.voids: list[dict[str, Any]] = []
        self.asked: list[tuple[str, dict[str, Any]]] = []

    def __call__(self, request: httpx.Request) -> Answer:
        path = request.url.path
        if path == "/order/o-1/void":
            self.voids.append(json.loads(request.content))
            return httpx.Response(200, json={**MOVED, **self.voids[-1], "amount": 89.95})
        if not path.startswith("/sandbox/cards/"):
            return httpx.Response(200, json=APPROVED)
        self.asked.append((path.removeprefix("/sandbox/cards/"), json.loads(request.content)))
        if path.endswith("/authorize"):
            return self.authorize
        return self.moves.pop(0) if self.moves else httpx.Response(200, json={"id": "m"})


@pytest.fixture(autouse=True)
def no_pause_between_cards(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cuota_demo.processor.PAUSES", (0, 0))


@pytest.fixture
def cards() -> Provider:
    return Provider()


@pytest.fixture
async def shop(tmp_path: Path, cards: Provider) -> AsyncIterator[Browser]:
    """A shop whose buyer has paid a kettle in a virtual-card checkout. The shop has the webhook, but no card yet."""
    environment = {**ENVIRONMENT_TOLD, "SHOP_MERCHANT_ID": MERCHANT, "SHOP_DATA": str(tmp_path)}
    browser = Browser(ShopSettings.from_environment(environment), Network(cards))
    await browser.post("/cart", sku="kettle")
    assert (await sign(browser)).status_code == 200
    body = raw(told := event(2, "order.approved", record=APPROVED))
    await browser.http.post("/webhooks", content=body, headers=headers(told, body))
    yield browser
    await browser.close()


async def sign(shop: Browser) -> httpx.Response:
    return await shop.post("/sign", amount="8995", way="card")


async def hand_over(shop: Browser) -> httpx.Response:
    return await shop.post("/card", number="1001", orderId="o-1", **CARD)


def everything_in(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.iterdir())


async def test_a_card_is_authorized_and_captured_in_full_and_then_the_cart_is_empty(
    shop: Browser, cards: Provider
) -> None:
    assert (await hand_over(shop)).json() == {"next": "/confirm?order=1001"}
    (first, asked), (second, taken) = cards.asked
    assert (first, second) == ("authorize", "authorizations/auth-1/capture")
    assert (asked["number"], asked["amount"], asked["merchantId"]) == (NUMBER, "89.95", MERCHANT)
    assert taken["amount"] == "89.95"
    assert "Thank you" in (await shop.http.get("/confirm?order=1001")).text
    assert "There is nothing in it yet." in (await shop.http.get("/cart")).text
    assert "Card ending 1486" in (await shop.http.get("/orders/1001")).text


async def test_a_card_that_the_page_sends_twice_is_charged_once(shop: Browser, cards: Provider) -> None:
    assert [(await hand_over(shop)).status_code for _ in range(3)] == [200] * 3
    assert len(cards.asked) == 2


async def test_the_shop_keeps_no_card_number(shop: Browser, tmp_path: Path) -> None:
    await hand_over(shop)
    kept = everything_in(tmp_path)
    assert b"1486" in kept
    assert NUMBER.encode() not in kept


async def test_without_a_card_the_confirmation_says_that_a_step_is_missing_and_the_same_signed_text_opens_the_order_again(
    shop: Browser,
) -> None:
    page = await shop.http.get("/confirm?order=1001")
    assert "One step is missing" in page.text
    assert "/cart?way=card&amp;display=popup" in page.text
    again = (await sign(shop)).json()
    assert again["number"] == 1001
    closed = await shop.post("/sign", amount="8995", way="card", closed="closed_by_customer", number="1001")
    assert closed.json() == again


async def test_a_refused_card_is_explained_and_its_order_is_canceled_once(
    shop: Browser, cards: Provider
) -> None:
    no = {"authorizationId": None, "approved": False, "reason": "wrong_merchant"}
    cards.authorize = httpx.Response(200, json=no)
    answer = await hand_over(shop)
    assert answer.status_code == 409
    assert "it is for another shop" in answer.json()["problem"]
    assert shop.store.signed.card(1001) is None
    await hand_over(shop)
    assert [void["amount"] for void in cards.voids] == ["89.95"]
    assert (await sign(shop)).json()["number"] == 1002


@pytest.mark.parametrize(
    "lost", [httpx.ReadTimeout("late"), httpx.Response(503, json={}), httpx.Response(200)]
)
async def test_a_request_whose_answer_is_lost_is_repeated_with_the_same_reference(
    shop: Browser, cards: Provider, lost: Answer
) -> None:
    said, cards.authorize = cards.authorize, lost
    assert "press the button again in a moment" in (await hand_over(shop)).json()["problem"]
    cards.authorize = said
    assert (await hand_over(shop)).status_code == 200
    assert len({asked["reference"] for path, asked in cards.asked if path == "authorize"}) == 1
    assert len([path for path, _ in cards.asked if path == "authorize"]) == 4


async def test_if_a_capture_gets_no_answer_the_buyer_continues_and_the_staff_can_repeat_the_capture(
    shop: Browser, cards: Provider
) -> None:
    cards.moves = [httpx.ReadTimeout("late")] * 3
    assert (await hand_over(shop)).json() == {"next": "/confirm?order=1001"}
    (pending,) = shop.store.pending(1001)
    await shop.post("/orders/1001/capture", reference=pending.reference, amount="89.95")
    assert shop.store.pending(1001) == []
    assert len({asked["reference"] for path, asked in cards.asked if path.endswith("/capture")}) == 1


async def test_the_staff_can_refund_on_the_card_and_a_refusal_is_explained(
    shop: Browser, cards: Provider
) -> None:
    await hand_over(shop)
    form = {"reference": str(uuid.uuid4()), "amount": "10.00"}
    await shop.post("/orders/1001/refund", **form)
    path, asked = cards.asked[-1]
    assert path == "authorizations/auth-1/refund"
    assert asked == {"amount": "10.00", "reference": form["reference"]}
    assert "$10.00 refunded." in (await shop.http.get("/orders/1001")).text
    cards.moves = [httpx.Response(422, json={"code": "refund_exceeds_captured", "message": "No."})]
    await shop.post("/orders/1001/refund", reference=str(uuid.uuid4()), amount="100.00")
    assert "That is more than can be refunded." in (await shop.http.get("/orders/1001")).text


async def test_another_visitor_cannot_send_a_card_for_an_order(shop: Browser, cards: Provider) -> None:
    shop.http.cookies.clear()
    assert (await hand_over(shop)).status_code == 404
    assert cards.asked == []


async def test_a_card_for_an_order_that_the_provider_does_not_report_as_paid_is_refused(
    shop: Browser, cards: Provider
) -> None:
    await shop.post("/sign", amount="8995", way="card", display="iframe")
    answer = await shop.post("/card", number="1002", orderId="o-1", **CARD)
    assert answer.status_code == 409
    assert cards.asked == []


async def test_a_card_for_an_order_of_another_kind_is_refused(shop: Browser, cards: Provider) -> None:
    await shop.post("/sign", amount="8995", way="standard")
    assert (await shop.post("/card", number="1002", **CARD)).status_code == 404
    assert cards.asked == []
