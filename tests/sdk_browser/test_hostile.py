"""Malicious pages: frames around the checkout, and messages from every wrong origin, window and token."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest
from playwright.async_api import Page, expect

from support.makers import Merchant, Running
from support.sdk_browser.hands import (
    Tabs,
    all_heard,
    buy,
    framed,
    heard,
    modal_of,
    orders,
    popup_of,
    the_order,
)
from support.sdk_browser.merchant_site import Site

pytestmark = pytest.mark.browser
WRONG_TOKEN = "00000000-0000-4000-8000-000000000000"
# Posts every kind of message, with every version and token that an attacker could try.
FLOOD = """([target, origin, tokens]) => {
    const to = {opener: window.opener, parent: window.parent, top: window.top, self: window}[target] ?? window[target];
    const result = {orderId: "stolen", customer: {}};
    const kinds = [{type: "ready"}, {type: "complete", result}, {type: "error", messages: ["stolen"]}, {type: "close"},
        ...["closed_by_customer", "session_expired", "closed_by_merchant", "declined"].map((message) => ({type: "closed", message})),
        {type: "ack", of: "complete"}, {type: "ack", of: "closed"}];
    let sent = 0;
    for (const kind of kinds) for (const checkout of tokens) for (const pay of [1, 2, "1"]) {
        to.postMessage({pay, checkout, ...kind}, origin);
        sent += 1;
    }
    return sent;
}"""


def tokens_of(token: str) -> list[str | None]:
    return [token, token.upper(), WRONG_TOKEN, "", None]


async def token_of(service: Running, merchant: Merchant) -> str:
    """Return the checkout's token, which an attacker could know."""
    sql = "SELECT token FROM orders WHERE merchant_id = $1"
    ((token,),) = await service.context.pool.fetch(sql, merchant.merchant_id)
    return str(token)


async def settled(page: Page) -> None:
    """Wait until the page has handled every message that was posted before."""
    await page.evaluate("""() => new Promise((heard) => {
        addEventListener("message", (event) => event.data === "last" && heard());
        postMessage("last", "*");
    })""")


async def test_a_page_that_is_not_the_merchant_s_cannot_frame_the_checkout(
    tabs: Tabs, tab: Page, site: Site, merchant: Merchant, service: Running
) -> None:
    tabs.expect("frame-ancestors|X-Frame-Options|status of 404")
    await tab.goto(site.page(merchant, display="iframe"))
    await modal_of(tab)
    inside = framed(tab).url
    token = await token_of(service, merchant)
    entry = f"{site.base}/checkout/{merchant.merchant_id}?token={token}&display="
    for address in (
        inside,
        f"{entry}iframe",
        f"{entry}popup",
        f"{entry}redirect",
        f"{site.base}/sdk/v1/window",
    ):
        hostile = await tabs.open()
        before = tabs.known
        await hostile.goto(f"{site.elsewhere}/frame?url={quote(address, safe='')}")
        frame = await (await hostile.query_selector("#f")).content_frame()  # type: ignore[union-attr]
        await hostile.wait_for_function("() => document.readyState === 'complete'")
        assert frame is not None
        assert await frame.locator("form, main").count() == 0, address
        assert tabs.known > before, address


async def test_messages_of_the_merchant_s_own_page_in_the_checkout_s_name_are_ignored(
    tab: Page, site: Site, merchant: Merchant, service: Running
) -> None:
    await tab.goto(site.page(merchant))
    popup = await popup_of(tab)
    token = await token_of(service, merchant)
    await tab.evaluate(FLOOD, ["self", "*", tokens_of(token)])
    await settled(tab)
    assert await all_heard(tab) == []
    await buy(popup)
    assert (await heard(tab, "onComplete"))["orderId"] != "stolen"


@pytest.mark.parametrize("sandbox", [None, "allow-scripts", "allow-scripts allow-same-origin"])
@pytest.mark.parametrize("host", ["same", "other"])
async def test_messages_of_another_frame_on_the_merchant_s_page_are_ignored(
    tabs: Tabs, tab: Page, site: Site, merchant: Merchant, service: Running, sandbox: str | None, host: str
) -> None:
    tabs.expect("can escape its sandboxing")
    await tab.goto(site.page(merchant, display="popup"))
    await popup_of(tab)
    origin = site.origin if host == "same" else site.elsewhere
    attacker = f"{origin}/shop/{merchant.merchant_id}/attacker?with=%7B%7D"
    await tab.evaluate(
        """([url, sandbox]) => new Promise((loaded) => {
        const frame = document.createElement("iframe");
        if (sandbox !== null) frame.sandbox = sandbox;
        Object.assign(frame, {id: "attacker", src: url, onload: loaded});
        document.body.append(frame);
    }).then(() => undefined)""",
        [attacker, sandbox],
    )
    token = await token_of(service, merchant)
    frame = await (await tab.query_selector("#attacker")).content_frame()  # type: ignore[union-attr]
    assert frame is not None
    assert await frame.evaluate("self.origin") == ("null" if sandbox == "allow-scripts" else origin)
    assert await frame.evaluate(FLOOD, ["parent", "*", tokens_of(token)]) == 150
    await settled(tab)
    assert await all_heard(tab) == []
    assert await the_order(service, merchant) == "Created"


@pytest.mark.parametrize("whose", ["the service", "the merchant", "another site"])
async def test_messages_of_another_window_are_ignored_whatever_its_site_is(
    tab: Page, site: Site, merchant: Merchant, service: Running, whose: str
) -> None:
    # The service's own page has the right origin and the right token, but this checkout was not opened in it.
    addresses = {
        "the service": f"{site.base}/sdk/v1/window",
        "the merchant": site.origin,
        "another site": site.elsewhere,
    }
    await tab.goto(site.page(merchant, display="iframe"))
    await modal_of(tab)
    async with tab.expect_popup() as opening:
        await tab.evaluate("(url) => void (window.other = open(url))", addresses[whose])
    other = await opening.value
    await other.wait_for_load_state()
    await other.evaluate(FLOOD, ["opener", site.origin, tokens_of(await token_of(service, merchant))])
    await settled(tab)
    assert await all_heard(tab) == []
    await expect(tab.locator("dialog")).to_be_visible()


async def test_messages_of_the_right_window_with_a_wrong_token_or_version_are_ignored(
    tab: Page, site: Site, merchant: Merchant
) -> None:
    await tab.goto(site.page(merchant, display="iframe"))
    await modal_of(tab)
    await framed(tab).evaluate(FLOOD, ["parent", site.origin, tokens_of(WRONG_TOKEN)])
    await framed(tab).evaluate(
        "(origin) => [null, 1, 'x', [], {pay: 1}, {pay: 1, type: 'complete'}].forEach((it) => parent.postMessage(it, origin))",
        site.origin,
    )
    await settled(tab)
    assert await all_heard(tab) == []
    await expect(tab.locator("dialog")).to_be_visible()


@pytest.mark.parametrize("whose", ["the merchant", "another site", "nobody"])
async def test_messages_of_the_right_window_are_ignored_once_it_shows_a_page_of_another_origin(
    tabs: Tabs, tab: Page, site: Site, merchant: Merchant, service: Running, whose: str
) -> None:
    host = site.elsewhere if whose == "another site" else site.origin
    await tab.goto(site.page(merchant, display="iframe"))
    await modal_of(tab)
    token = await token_of(service, merchant)
    await tab.evaluate(
        """([url, sandboxed]) => new Promise((loaded) => {
        const frame = [...document.querySelectorAll("body > div")].at(-1).shadowRoot.querySelector("iframe");
        if (sandboxed) frame.sandbox = "allow-scripts";
        Object.assign(frame, {onload: loaded, src: url});
    }).then(() => undefined)""",
        [f"{host}/shop/{merchant.merchant_id}/attacker?with=%7B%7D", whose == "nobody"],
    )
    (intruder,) = [frame for frame in tab.frames if "/attacker" in frame.url]
    assert await intruder.evaluate("self.origin") == ("null" if whose == "nobody" else host)
    await intruder.evaluate(FLOOD, ["parent", "*", tokens_of(token)])
    await settled(tab)
    assert await all_heard(tab) == []
    await expect(tab.locator("dialog")).to_be_visible()


@pytest.mark.parametrize("display", ["popup", "iframe"])
async def test_the_checkout_accepts_messages_only_from_the_merchant_s_page_and_answers_only_that_page(
    tabs: Tabs, tab: Page, site: Site, merchant: Merchant, service: Running, display: str
) -> None:
    # Another site opens the checkout in a window, so that site knows the checkout's token.
    tabs.expect("frame-ancestors|Failed to execute 'postMessage'")
    await tab.goto(site.page(merchant, display=display))
    await (popup_of(tab) if display == "popup" else modal_of(tab))
    token = await token_of(service, merchant)
    hostile = await tabs.open()
    await hostile.goto(f"{site.elsewhere}/shop/{merchant.merchant_id}/attacker?with=%7B%7D")
    await hostile.evaluate(
        "window.got = []; addEventListener('message', (event) => got.push(event.data)); undefined"
    )
    address = f"{site.base}/checkout/{merchant.merchant_id}?token={token}&display=popup"
    async with hostile.expect_popup() as opening:
        await hostile.evaluate("(url) => void (window.victim = open(url))", address)
    victim = await opening.value
    await victim.get_by_label("Mobile phone number").wait_for()
    await hostile.evaluate(FLOOD, ["victim", "*", tokens_of(token)])
    await settled(victim)
    await expect(victim.get_by_label("Mobile phone number")).to_be_visible()
    assert await the_order(service, merchant) == "Created"
    await buy(victim)
    await victim.get_by_role("heading", name="Your order is confirmed").wait_for()
    await settled(hostile)
    assert await hostile.evaluate("got.filter((it) => it !== 'last')") == []


async def test_the_sdk_posts_every_message_to_a_fixed_origin() -> None:
    from pathlib import Path

    static = Path(__file__).parents[2] / "src/cuota/web/pages/static"
    for script in ("pay.js", "page.js"):
        text = (static / script).read_text()
        assert "postMessage(" in text
        assert '"*"' not in text
        assert json.dumps("*") not in text


async def test_a_page_of_another_site_without_a_signature_cannot_open_an_order(
    tabs: Tabs, tab: Page, site: Site, merchant: Merchant, service: Running
) -> None:
    tabs.expect("status of 401")
    await tab.goto(site.page(merchant, "forged", host=site.elsewhere, display="iframe"))
    await tab.locator("#buy").click()
    await heard(tab, "onError")
    assert await orders(service, merchant) == {}
