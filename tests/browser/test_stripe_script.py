"""The script for Stripe's Payment Element, with a stand-in that has the functions which Stripe's documentation names."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from playwright.async_api import Page, Route, expect

from cuota.core.checkout.card import read_card
from cuota.rails.card.protocol import Card, CardFields, CardHolder, UnknownToken
from cuota.rails.card.rails import CardRails
from cuota.rails.card.sandbox import SandboxCardRail
from support.browser.shopper import DETAILS, fill, paid, press_pay, to_checkout
from support.browser.tabs import OpenTab, Shop
from support.makers import Running

pytestmark = pytest.mark.browser
SCRIPT = "https://js.stripe.com/v3/"
# The typed text decides the result: an empty text is incomplete, and "down" means that Stripe cannot be reached.
STAND_IN = """
window.Stripe = (key) => {
  window.asked = { key, submitted: 0, created: 0 };
  const input = document.createElement("input");
  input.setAttribute("aria-label", "Card number at Stripe");
  const heard = {};
  return {
    elements(options) {
      asked.elements = options;
      return {
        create(type, more) {
          asked.type = type;
          return {
            on: (name, listener) => (heard[name] = listener),
            mount: (place) => { place.append(input); heard.ready(); },
          };
        },
        async submit() {
          asked.submitted++;
          const error = { type: "validation_error", message: "Your card number is incomplete." };
          return input.value ? {} : { error };
        },
      };
    },
    async createPaymentMethod({ elements }) {
      asked.created++;
      if (input.value === "down") return { error: { type: "api_connection_error" } };
      return { paymentMethod: { id: "pm_stand_in" } };
    },
  };
};
"""


class StripesFields:
    """The sandbox's rail, but the page shows Stripe's fields, and the token is a payment method."""

    name = "sandbox"

    def __init__(self, own: SandboxCardRail) -> None:
        self._own = own

    def __getattr__(self, name: str) -> Any:
        return getattr(self._own, name)

    def fields(self) -> CardFields:
        return CardFields((SCRIPT, "/static/stripe-card.js"), {"key": "pk_test_public"})

    async def keep(self, token: str, holder: CardHolder) -> Card:
        if token != "pm_stand_in":
            raise UnknownToken
        card = read_card("4242424242424242", "12/39", "737", self._own._now().date())
        return await self._own.keep(await self._own.tokenize(card), holder)


@pytest.fixture(autouse=True)
def stripes_fields(service: Running) -> Iterator[None]:
    """Let the page show Stripe's fields."""
    rails = service.context.rails
    before = rails.card
    assert before.sandbox is not None
    object.__setattr__(rails, "card", CardRails(StripesFields(before.sandbox)))  # type: ignore[arg-type]
    yield
    object.__setattr__(rails, "card", before)


async def to_pay(page: Page, shop: Shop, script: str | None = STAND_IN) -> None:
    async def answer(route: Route) -> None:
        await (
            route.abort() if script is None else route.fulfill(body=script, content_type="text/javascript")
        )

    await page.route(SCRIPT, answer)
    await to_checkout(page, shop)
    await fill(page, phone="(212) 555-0142")
    await fill(page, code="123456")
    await fill(page, **DETAILS)


async def test_the_payment_element_gives_the_token_that_pays(
    open_tab: OpenTab, shop: Shop, service: Running
) -> None:
    page = await open_tab()
    await to_pay(page, shop)
    await page.get_by_label("Card number at Stripe").fill("4242")
    await page.get_by_label("I have read and accept").check()
    asked = json.loads(await page.evaluate("JSON.stringify(asked)"))
    assert (asked["key"], asked["type"]) == ("pk_test_public", "payment")
    options = asked["elements"]
    assert options.pop("appearance")["theme"] == "stripe"
    assert options == {
        "mode": "payment", "amount": 2249, "currency": "usd", "setupFutureUsage": "off_session",
        "paymentMethodCreation": "manual", "paymentMethodTypes": ["card"], "locale": "en",
    }  # fmt: skip
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.post_data or ""))
    await press_pay(page)
    await page.wait_for_url(f"{shop.url}/confirm?*")
    assert [text for text in sent if "card_token=pm_stand_in" in text]
    assert await paid(service, page.url.partition("orderId=")[2]) == [2249]


async def test_stripe_s_error_and_a_missing_consent_are_shown_together_and_no_payment_method_is_created(
    open_tab: OpenTab, shop: Shop
) -> None:
    page = await open_tab()
    await to_pay(page, shop)
    await page.get_by_role("button", name="Pay $").click()
    await expect(page.locator("#card_number-error")).to_contain_text("Your card number is incomplete.")
    await expect(page.locator("#agree-error")).to_be_visible()
    await expect(page.locator("#card_number")).to_be_focused()
    assert await page.evaluate("asked.created") == 0


async def test_if_stripe_cannot_be_reached_nothing_is_charged_and_the_page_says_so(
    open_tab: OpenTab, shop: Shop
) -> None:
    page = await open_tab()
    await to_pay(page, shop)
    await page.get_by_label("Card number at Stripe").fill("down")
    await page.get_by_label("I have read and accept").check()
    await page.get_by_role("button", name="Pay $").click()
    await expect(page.get_by_role("alert")).to_contain_text("We cannot reach your card's processor")
    await expect(page.get_by_role("button", name="Pay $")).to_be_enabled()


async def test_if_stripe_s_script_does_not_load_the_page_says_so(open_tab: OpenTab, shop: Shop) -> None:
    page = await open_tab(expected="ERR_FAILED")
    await to_pay(page, shop, None)
    alert = page.get_by_role("alert")
    await expect(alert).to_contain_text("The fields for your card could not be loaded")
    await page.get_by_role("button", name="Pay $").click()
    await expect(alert).to_contain_text("The fields for your card could not be loaded")
    await expect(page.get_by_role("heading", name="Review and pay")).to_be_visible()


async def test_without_javascript_the_page_has_no_input_for_a_card_and_says_that_javascript_is_needed(
    open_tab: OpenTab, shop: Shop
) -> None:
    page = await open_tab(java_script_enabled=False)
    await to_pay(page, shop)
    # The browser's library turns scripts off only after the page is read, so the element `noscript` is not shown here.
    assert "need JavaScript" in await page.content()
    await expect(page.locator("[name=card_number]")).to_have_count(0)
