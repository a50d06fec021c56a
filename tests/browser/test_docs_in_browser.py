"""The documentation in a real browser: the reference sends real requests, and the guides work without JavaScript."""

from __future__ import annotations

import json
import re

import pytest
from playwright.async_api import Page, Route, expect

from cuota.web.docs.guides import listed
from support.browser.screens import look_everywhere
from support.browser.tabs import OpenTab
from support.makers import Merchant, Running

pytestmark = pytest.mark.browser
DESKTOP = {"width": 1280, "height": 900}
SLOW = 240_000  # the timeout for a large script on a busy machine
PAGES = ["/docs", *(guide.path for guide in listed())]


async def reference(open_tab: OpenTab, service: Running, **options: object) -> Page:
    """Open the reference in a tab that records every request to another origin."""
    page = await open_tab(**{"viewport": DESKTOP, **options})
    page.set_default_timeout(SLOW)
    await page.goto(f"{service.settings.public_url}/docs/reference")
    await shown(page)
    return page


async def shown(page: Page) -> None:
    """Wait until the reference has loaded the document."""
    await expect(page.get_by_role("heading", name="Merchant API", level=1)).to_be_visible(timeout=SLOW)


async def to_operation(page: Page, group: str, operation: str) -> None:
    """Go to an operation by the table of contents."""
    await page.get_by_role("button", name=f"Open Group - {group}").click()
    await page.get_by_role("link", name=re.compile(operation)).first.click()


async def send(page: Page, label: str) -> str:
    """Open the form of an operation, send it unchanged, and return the body of the answer."""
    await page.get_by_role("button", name=f"({label})").first.click()
    method = label.split(" ", 1)[0].upper()
    async with page.expect_response(lambda answer: answer.request.method == method) as waiting:
        await page.get_by_role("button", name=re.compile("^Send")).first.click()
    answer = await waiting.value
    assert answer.status == 200, await answer.text()
    await expect(page.get_by_text("200 OK").first).to_be_visible(timeout=SLOW)
    return await answer.text()


async def test_a_developer_gets_a_token_creates_an_order_and_reads_it_in_the_reference(
    open_tab: OpenTab, service: Running, merchant: Merchant
) -> None:
    page = await reference(open_tab, service)
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    cell = page.get_by_role("cell").or_(page.locator("td"))
    await (
        cell.filter(has=page.get_by_text("Client ID", exact=True)).locator("[contenteditable]").first.click()
    )
    await page.keyboard.type(merchant.client_id)
    await page.get_by_label("Client Secret", exact=True).first.fill(merchant.client_secret)
    async with page.expect_response("**/oauth/token") as waiting:
        await page.get_by_role("button", name="Authorize").first.click()
    assert (await waiting.value).status == 200

    await to_operation(page, "Orders", "Create an order")
    order = json.loads(await send(page, "post /order"))
    await page.keyboard.press("Escape")

    await page.get_by_role("link", name=re.compile("Read an order")).first.click()
    await page.get_by_role("button", name="(get /order/{orderId})").first.click()
    row = page.get_by_role("dialog").locator("tr").filter(has_text="orderId").first
    box = row.locator("[contenteditable]").last
    await box.click()
    await page.keyboard.press("Control+a")
    await page.keyboard.type(order["orderId"])
    async with page.expect_response(f"**/order/{order['orderId']}") as read:
        await page.get_by_role("button", name=re.compile("^Send")).first.click()
    record = await (await read.value).json()
    assert (record["orderId"], record["orderStatus"]) == (order["orderId"], "Created")
    assert [url for url in asked if not url.startswith((service.settings.public_url, "blob:", "data:"))] == []


async def test_code_is_shown_in_curl_javascript_and_python_and_can_be_copied(
    open_tab: OpenTab, service: Running
) -> None:
    page = await reference(open_tab, service, permissions=["clipboard-read", "clipboard-write"])
    await to_operation(page, "Orders", "Create an order")
    sample = page.get_by_role("region", name="Create an order").or_(
        page.locator("section").filter(has_text="Opens an order")
    )
    choice = sample.get_by_role("button", name="Shell Curl").last
    await choice.click()
    offered = await page.get_by_role("option").all_inner_texts()
    assert [text.strip() for text in offered] == ["Fetch", "Requests", "Curl"]
    await page.get_by_role("option", name="Requests").click()
    await expect(page.get_by_text("requests.post(").first).to_be_visible(timeout=SLOW)


async def test_the_search_finds_a_call_by_the_description_of_its_purpose(
    open_tab: OpenTab, service: Running
) -> None:
    page = await reference(open_tab, service)
    await page.keyboard.press("Control+k")
    await page.get_by_role("combobox", name=re.compile("search", re.IGNORECASE)).last.fill("refund")
    await expect(page.get_by_role("option", name=re.compile("Refund")).first).to_be_visible(timeout=SLOW)


async def test_in_production_the_reference_cannot_send_requests(open_tab: OpenTab, service: Running) -> None:
    page = await open_tab(viewport=DESKTOP)

    async def as_production(route: Route) -> None:
        # Production serves the same page with one different word (tests/web/docs/test_docs_page.py checks that).
        answer = await route.fetch()
        body = (await answer.text()).replace('data-try="yes"', 'data-try="no"')
        await route.fulfill(response=answer, body=body)

    await page.route("**/docs/reference", as_production)
    page.set_default_timeout(SLOW)
    await page.goto(f"{service.settings.public_url}/docs/reference")
    await shown(page)
    await to_operation(page, "Orders", "Create an order")
    await expect(page.get_by_text("Creates an order and returns").first).to_be_visible(timeout=SLOW)
    assert await page.get_by_role("button", name="Test Request").count() == 0


async def test_the_pages_fit_each_screen_and_are_accessible(open_tab: OpenTab, service: Running) -> None:
    page = await open_tab()
    for path in PAGES:
        await page.goto(service.settings.public_url + path)
        await look_everywhere(page, path)


async def test_the_reference_fits_a_phone_s_screen(open_tab: OpenTab, service: Running) -> None:
    page = await reference(open_tab, service, viewport={"width": 375, "height": 812})
    assert await page.evaluate("document.documentElement.scrollWidth") == 375
    await page.get_by_role("button", name=re.compile("menu", re.IGNORECASE)).first.click()
    await to_operation(page, "Money", "Refund")
    await expect(page.get_by_text("Gives captured money back").first).to_be_visible(timeout=SLOW)


async def test_a_sample_is_copied_by_its_button(open_tab: OpenTab, service: Running) -> None:
    page = await open_tab(permissions=["clipboard-read", "clipboard-write"])
    await page.goto(f"{service.settings.public_url}/docs/sdk")
    await page.get_by_role("button", name="Copy").first.click()
    await expect(page.get_by_role("button", name="Copied")).to_be_visible()
    copied = await page.evaluate("navigator.clipboard.readText()")
    assert copied == f'<script async src="{service.settings.public_url}/v1/pay.js"></script>'


async def test_the_guides_work_without_script_and_the_reference_links_to_them(
    open_tab: OpenTab, service: Running
) -> None:
    page = await open_tab(java_script_enabled=False)
    await page.goto(f"{service.settings.public_url}/docs")
    await page.get_by_role("main").get_by_role("link", name="Webhooks", exact=True).click()
    await expect(page.get_by_role("heading", name="Webhooks", level=1)).to_be_visible()
    await expect(page.get_by_role("button", name="Copy")).to_have_count(0)
    await page.get_by_role("link", name="API reference").click()
    await page.get_by_role("link", name="guides and error codes").click()
    await expect(page).to_have_url(f"{service.settings.public_url}/docs")


async def test_the_first_press_of_tab_offers_to_skip_the_navigation(
    open_tab: OpenTab, service: Running
) -> None:
    page = await open_tab()
    await page.goto(f"{service.settings.public_url}/docs/sdk")
    await page.keyboard.press("Tab")
    await expect(page.get_by_role("link", name="Skip to the text")).to_be_focused()
    await page.keyboard.press("Enter")
    await expect(page.locator("#main")).to_be_focused()
