"""With a script, the browser exchanges the card for a token, and no form sends a digit of the card."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import unquote_plus

import pytest
from playwright.async_api import Page, Request, Route, expect

from support.browser.by_http import at_card
from support.browser.shopper import CARD_THAT_PAYS, card, paid, press_pay
from support.browser.tabs import OpenTab, Shop
from support.makers import Running

pytestmark = pytest.mark.browser
TOKENS = "**/sandbox-processor/cards"
SEQUENCES = [CARD_THAT_PAYS[start : start + 8] for start in range(9)]


def watched(page: Page) -> list[Request]:
    """Collect all requests of the tab."""
    sent: list[Request] = []
    page.on("request", lambda request: sent.append(request))  # noqa: PLW0108 (the browser's library wants a function)
    return sent


def digits_in(request: Request) -> bool:
    """True if the request has eight digits of the card in a row, with or without spaces, in its address, headers or
    body."""
    whole = " ".join([request.url, str(request.headers), request.post_data or ""])
    plain = re.sub(r"[\s-]", "", unquote_plus(whole))
    return any(part in plain for part in SEQUENCES)


def order_in(page: Page) -> str:
    return page.url.partition("orderId=")[2]


async def to_pay(page: Page, shop: Shop) -> None:
    await at_card(page, shop)


async def test_only_the_processor_s_path_gets_the_card_and_only_the_token_reaches_the_form(
    open_tab: OpenTab, shop: Shop, service: Running
) -> None:
    page = await open_tab()
    await to_pay(page, shop)
    sent = watched(page)
    await card(page)
    await press_pay(page)
    await page.wait_for_url(f"{shop.url}/confirm?*")
    with_digits = [request.url for request in sent if digits_in(request)]
    assert with_digits == [f"{service.settings.public_url}/sandbox-processor/cards"]
    form = next(request for request in sent if request.url.endswith("/pay"))
    assert re.search(r"card_token=card_[\w-]{24}(&|$)", form.post_data or "")
    assert not re.search(r"card_(number|expiry|cvc)=", form.post_data or "")
    assert await paid(service, order_in(page)) == [2249]


async def test_without_a_script_the_sandbox_s_form_itself_sends_the_card(
    open_tab: OpenTab, shop: Shop, service: Running
) -> None:
    page = await open_tab(java_script_enabled=False)
    await to_pay(page, shop)
    sent = watched(page)
    await card(page)
    await press_pay(page)
    await page.wait_for_url(f"{shop.url}/confirm?*")
    assert [request.url.rpartition("/")[2] for request in sent if digits_in(request)] == ["pay"]
    assert await paid(service, order_in(page)) == [2249]


async def lost(route: Route) -> None:
    await route.abort("connectionfailed")


async def overloaded(route: Route) -> None:
    await route.fulfill(status=429, json={"code": "rate_limited"})


async def unreadable(route: Route) -> None:
    await route.fulfill(status=200, body="<html>")


@pytest.mark.parametrize("fails", [lost, overloaded, unreadable])
async def test_an_unreachable_processor_is_reported_and_the_same_form_pays_later(
    open_tab: OpenTab, shop: Shop, service: Running, fails: Callable[[Route], Any]
) -> None:
    page = await open_tab(expected=r"ERR_CONNECTION_FAILED|429")
    await to_pay(page, shop)
    await card(page)
    await page.route(TOKENS, fails)
    sent = watched(page)
    button = page.get_by_role("button", name="Pay $")
    await button.click()
    alert = page.get_by_role("alert")
    await expect(alert).to_have_text("We cannot reach your card's processor. Nothing was charged; try again.")
    await expect(alert).to_be_focused()
    await expect(alert).to_be_in_viewport()
    await expect(button).to_be_enabled()
    assert not [request for request in sent if request.url.endswith("/pay")]
    await expect(page.get_by_label("Card number")).to_have_value("4242 4242 4242 4242")
    await page.unroute(TOKENS)
    await press_pay(page)
    await page.wait_for_url(f"{shop.url}/confirm?*")
    assert await paid(service, order_in(page)) == [2249]


async def test_an_error_that_only_the_processor_finds_is_shown_at_its_field(
    open_tab: OpenTab, shop: Shop
) -> None:
    page = await open_tab(expected="400")
    await to_pay(page, shop)
    await card(page)

    async def refuse(route: Route) -> None:
        await route.fulfill(status=400, json={"errors": {"card_cvc": "This code was not accepted."}})

    await page.route(TOKENS, refuse)
    await page.get_by_role("button", name="Pay $").click()
    await expect(page.locator("#card_cvc-error")).to_contain_text("This code was not accepted.")
    await expect(page.get_by_label("Security code")).to_be_focused()


async def test_several_presses_while_the_processor_is_slow_cause_one_token_one_form_and_one_charge(
    open_tab: OpenTab, shop: Shop, service: Running
) -> None:
    page = await open_tab()
    await to_pay(page, shop)
    await card(page)
    held: list[Route] = []

    async def hold(route: Route) -> None:
        held.append(route)

    await page.route(TOKENS, hold)
    sent = watched(page)
    button = page.get_by_role("button", name=re.compile("Pay"))
    await button.dblclick()
    await expect(button).to_be_disabled()
    await expect(button).to_have_text("Paying $22.49…")
    await page.locator("form.ask").evaluate("form => form.requestSubmit()")
    async with page.expect_navigation():
        await held[0].continue_()
    await page.wait_for_url(f"{shop.url}/confirm?*")
    assert (len(held), len([request for request in sent if request.url.endswith("/pay")])) == (1, 1)
    assert await paid(service, order_in(page)) == [2249]


async def test_after_back_the_form_has_no_old_token_and_works_again(
    open_tab: OpenTab, shop: Shop, service: Running
) -> None:
    page = await open_tab()
    await to_pay(page, shop)
    await card(page, "4000000000000002")
    await press_pay(page)
    await expect(page.get_by_role("alert")).to_contain_text("Try another card")
    await page.go_back()
    await expect(page.get_by_role("heading", name="Review and pay")).to_be_visible()
    assert await page.locator("[name=card_token]").input_value() == ""
    await card(page)
    await press_pay(page)
    await page.wait_for_url(f"{shop.url}/confirm?*")
    assert await paid(service, order_in(page)) == [2249]


async def test_if_the_rail_s_script_does_not_load_the_sandbox_s_form_works_as_without_a_script(
    open_tab: OpenTab, shop: Shop, service: Running
) -> None:
    page = await open_tab(expected="ERR_FAILED")
    await page.route("**/static/sandbox-card.js", lambda route: route.abort())
    await to_pay(page, shop)
    await card(page)
    await press_pay(page)
    await page.wait_for_url(f"{shop.url}/confirm?*")
    assert await paid(service, order_in(page)) == [2249]
