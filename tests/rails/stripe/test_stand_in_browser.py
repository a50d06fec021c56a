"""The stand-in's Stripe.js in a real browser, used as docs.stripe.com/js documents it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from starlette.requests import Request
from starlette.responses import HTMLResponse
from starlette.types import Receive, Scope, Send

from support.stripe.pages import served
from support.stripe.stand_in import PUBLISHABLE, StandIn

if TYPE_CHECKING:
    from playwright.async_api import Browser

pytestmark = pytest.mark.browser

PAGE = """<!doctype html><title>Shop</title><div id="card"></div><output></output>
<script src="{url}/js.stripe.com/v3/"></script><script>
  const stripe = Stripe('{key}');
  const elements = stripe.elements({{mode: 'payment', amount: 1250, currency: 'usd', paymentMethodCreation: 'manual'}});
  const payment = elements.create('payment', {{layout: 'tabs'}});
  const told = [];
  payment.on('ready', () => told.push('ready'));
  payment.on('change', event => told.push(event.complete));
  payment.mount('#card');
  async function pay() {{
    const {{error}} = await elements.submit();
    if (error) return error.code;
    const made = await stripe.createPaymentMethod({{elements}});
    return made.error ? made.error.message : made.paymentMethod.id;
  }}
</script>"""


async def test_a_card_that_is_typed_into_the_payment_element_becomes_a_payment_method(
    stand_in: StandIn, chromium: Browser
) -> None:
    async def shop(scope: Scope, receive: Receive, send: Send) -> None:
        assert Request(scope).method == "GET"
        page = HTMLResponse(PAGE.format(url=stand_in.intents.url, key=PUBLISHABLE))
        await page(scope, receive, send)

    async with served(shop) as url:
        profile = await chromium.new_context()
        try:
            page = await profile.new_page()
            await page.goto(url)
            assert await page.evaluate("pay()") == "incomplete_number"
            await page.get_by_label("Card number").fill("4242 4242 4242 4242")
            await page.get_by_label("Expiration month").fill("12")
            await page.get_by_label("Expiration year").fill("35")
            await page.get_by_label("Security code").fill("123")
            method = await page.evaluate("pay()")
            assert stand_in.ledger.numbers[method] == "4242424242424242"
            told = await page.evaluate("told")
            assert told[0] == "ready"
            assert told[-1] is True
        finally:
            await profile.close()


async def test_a_consumer_confirms_at_the_bank_s_page_and_comes_back(
    stand_in: StandIn, chromium: Browser
) -> None:
    from support.stripe.stand_in import enter_card

    method = await enter_card(stand_in, "4000002760003184")
    _, customer = await stand_in._post("/v1/customers", [("name", "Ada")])

    async def shop(scope: Scope, receive: Receive, send: Send) -> None:
        await HTMLResponse("<!doctype html><title>Back</title>")(scope, receive, send)

    async with served(shop) as url:
        _, intent = await stand_in.intents.create(
            [
                ("amount", "1250"), ("currency", "usd"), ("customer", customer["id"]), ("payment_method", method),
                ("return_url", f"{url}/back"), ("setup_future_usage", "off_session"), ("confirm", "true"),
            ]
        )  # fmt: skip
        profile = await chromium.new_context()
        try:
            page = await profile.new_page()
            await page.goto(intent["next_action"]["redirect_to_url"]["url"])
            await page.get_by_role("button", name="Complete authentication").click()
            await page.wait_for_url(f"{url}/back?*")
            assert "redirect_status=succeeded" in page.url
        finally:
            await profile.close()
    _, ended = await stand_in.intents.read(intent["id"])
    assert ended["status"] == "succeeded"
