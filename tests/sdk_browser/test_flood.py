"""A page gets ten thousand false messages at once, and the checkout still works."""

from __future__ import annotations

import pytest
from playwright.async_api import Page

from support.makers import Merchant
from support.sdk_browser.hands import buy, framed, heard, modal_of
from support.sdk_browser.merchant_site import Site

pytestmark = pytest.mark.browser
MESSAGES = 10_000
# Posts messages of every kind from the window to itself. Returns the milliseconds until the last message was handled.
SHOUT = """(messages) => new Promise((heard) => {
    const began = performance.now();
    addEventListener("message", (event) => event.data === "last" && heard(performance.now() - began));
    const kinds = ["x", 7, null, {}, {pay: 1}, {pay: 1, type: "complete", result: {}}, {pay: 2, type: "closed"},
        {pay: 1, checkout: "00000000-0000-4000-8000-000000000000", type: "closed", message: "declined"},
        {pay: 1, type: "error", messages: "x".repeat(1000)}, [[[[]]]]];
    for (let sent = 0; sent < messages; sent += 1) postMessage(kinds[sent % kinds.length], "*");
    postMessage("last", "*");
})"""


async def test_ten_thousand_false_messages_at_once_cost_at_most_a_millisecond_each_and_are_ignored(
    tab: Page, site: Site, merchant: Merchant
) -> None:
    await tab.goto(site.page(merchant, display="iframe"))
    frame = await modal_of(tab)
    for place in (tab, framed(tab)):
        assert await place.evaluate(SHOUT, MESSAGES) < MESSAGES
    await buy(frame)
    assert (await heard(tab, "onComplete"))["orderId"]
    assert await heard(tab, "status") == "Approved"
