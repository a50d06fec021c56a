"""`pay.js?inspect` opens a panel that shows every message and the result of the signature check, but no card number."""

from __future__ import annotations

import hashlib

import pytest
from playwright.async_api import Page, expect

from support.makers import Merchant
from support.sdk_browser.hands import Tabs, buy, heard, popup_of
from support.sdk_browser.merchant_site import Site

pytestmark = pytest.mark.browser


async def test_the_inspector_shows_calls_messages_callbacks_and_the_signature_s_check(
    tab: Page, site: Site, merchant: Merchant
) -> None:
    await tab.goto(site.page(merchant, "inspect"))
    await tab.get_by_text("Pay inspector").click()
    panel = tab.get_by_role("list", name="What happened")
    await buy(await popup_of(tab))
    await heard(tab, "onComplete done")
    for words in ("call openCheckout", "window popup opened", "signature accepted", "message page → ready",
                  "message page → complete", "message page ← ack", "callback onComplete"):  # fmt: skip
        await expect(panel.get_by_text(words).first).to_be_visible()
    sent = await tab.evaluate("given.body")
    shown = panel.locator("li", has_text="signature accepted")
    await expect(shown).to_contain_text(f"bytes sent {len(sent.encode())}")
    await expect(shown).to_contain_text(hashlib.sha256(sent.encode()).hexdigest())
    await tab.get_by_role("button", name="Clear").click()
    await expect(panel.get_by_role("listitem")).to_have_count(0)


async def test_the_inspector_says_why_a_message_and_a_signature_were_refused(
    tabs: Tabs, tab: Page, site: Site, merchant: Merchant
) -> None:
    tabs.expect("status of 401")
    await tab.goto(site.page(merchant, "inspect", display="iframe"))
    await tab.get_by_text("Pay inspector").click()
    panel = tab.get_by_role("list", name="What happened", include_hidden=True)
    await tab.locator("#buy").click()
    await expect(panel.locator("li", has_text="page → ready")).to_have_count(1)
    await tab.evaluate("postMessage({pay: 1, checkout: 'x', type: 'complete', result: {}}, '*')")
    await expect(panel.locator("li.refused", has_text="refused origin")).to_have_count(1)
    await tab.get_by_role("button", name="Close payment").click()
    await heard(tab, "onClose done")
    await tab.evaluate("pay.apiCheckout.openCheckout(given.body, 'c2lnbmF0dXJl')")
    await expect(panel.locator("li.refused", has_text="signature refused")).to_have_count(1)


async def test_the_inspector_masks_a_card_in_every_line(tab: Page, site: Site, merchant: Merchant) -> None:
    await tab.goto(site.page(merchant, "inspect", integrationType="virtual_card"))
    await tab.get_by_text("Pay inspector").click()
    panel = tab.get_by_role("list", name="What happened")
    await buy(await popup_of(tab))
    card = (await heard(tab, "onComplete"))["card"]
    await heard(tab, "onComplete done")
    await expect(panel.get_by_text("callback onComplete").first).to_be_visible()
    text = await panel.inner_text()
    assert card["number"] not in text
    assert f"•{card['number'][-4:]}" in text
    assert f'"cvc": "{card["cvc"]}"' not in text


async def test_without_the_parameter_inspect_no_panel_is_shown_or_loaded(
    tab: Page, site: Site, merchant: Merchant
) -> None:
    loaded: list[str] = []
    tab.on("request", lambda request: loaded.append(request.url))
    await tab.goto(site.page(merchant))
    await popup_of(tab)
    await expect(tab.locator("[data-pay-inspector]")).to_have_count(0)
    assert not [url for url in loaded if "inspect" in url]
