"""Checks every page and state of checkout and shop: accessibility, phone size, dark mode, reduced motion, console errors."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.async_api import Page, Route, expect

from support.browser.screens import SCREENS, each_screen, problems
from support.browser.shopper import CARD_DECLINED, card, fill, press, press_pay, to_card, to_checkout
from support.browser.tabs import OpenTab, Shop
from support.makers import Running

pytestmark = pytest.mark.browser


class Inspector:
    """Checks the page as it is now. All problems are reported together at the end."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.found: list[str] = []
        self.seen: list[str] = []

    async def look(self, state: str) -> None:
        self.seen.append(state)
        async for screen in each_screen(self.page):
            found = await problems(self.page, screen.rules)
            self.found += [f"{state}, {screen.name}: {problem}" for problem in found]


async def test_every_state_of_the_checkout_is_accessible_and_fits_the_screen(
    open_tab: OpenTab, service: Running, shop: Shop
) -> None:
    page = await open_tab()
    inspector = Inspector(page)
    items = [
        {"name": f"{'Unbreakable' * 20 if n == 0 else 'Peg'} {n}", "quantity": n, "price": "1.10"}
        for n in range(40)
    ]
    order = await shop.merchant.create(
        "1234.56", items=items, merchantFeeForPaymentPlan="50.00", taxAmount="8.10"
    )
    await page.route("http://127.0.0.1:9/**", _stay)
    await page.goto(order["redirectUrl"])
    await inspector.look("phone")
    await page.get_by_text("Show 37 more items").click()
    await fill(page, phone="12")
    await inspector.look("phone, wrong")
    await fill(page, phone="2125550142")
    await inspector.look("code")
    await fill(page, code="0")
    await inspector.look("code, wrong")
    await press(page, page.get_by_role("button", name="Send a new code"))
    await inspector.look("code, sent again")
    await fill(page, code="123456")
    await inspector.look("details")
    await fill(page, surname="2")
    await inspector.look("details, wrong")
    await page.reload()
    await page.goto(order["redirectUrl"])
    await fill(page, given_names="Jordan", surname="Rivera", email="j@mail.example", address_line1="1 Main Street",
               city="Springfield", state="NY", postcode="10001")  # fmt: skip
    await page.get_by_text("Your order", exact=True).click()
    await page.get_by_text("Sandbox test cards").click()
    await inspector.look("pay, with a finance charge, unfolded")
    await page.get_by_role("button", name="Pay $").click()
    await expect(page.locator("#card_number-error")).to_be_visible()
    await inspector.look("pay, wrong")
    await card(page, CARD_DECLINED)
    await press_pay(page)
    await inspector.look("pay, declined")
    await card(page)
    await press_pay(page)
    await expect(page.get_by_role("heading", name="Your order is confirmed")).to_be_visible()
    await inspector.look("approved")
    assert inspector.found == []
    assert len(inspector.seen) == 11


async def _stay(route: Route) -> None:
    """The last page goes to the merchant automatically. Keep it open here, to check it."""
    await route.abort("aborted")


async def test_every_other_last_page_of_the_checkout_is_accessible_and_fits_the_screen(
    open_tab: OpenTab, service: Running, shop: Shop
) -> None:
    page = await open_tab()
    inspector = Inspector(page)
    await page.route("http://127.0.0.1:9/**", _stay)
    order = await shop.merchant.create()
    await page.goto(order["redirectUrl"])
    await to_card(page, surname="Declinetest")
    await inspector.look("pay")
    await card(page)
    await press_pay(page)
    await inspector.look("declined")
    left = await shop.merchant.create()
    await page.goto(left["redirectUrl"])
    async with service.clock.moved(minutes=61):
        await page.reload()
        await inspector.look("expired")
    form = "form => { form.querySelector('[name=csrf]').value = 'x'; form.submit(); }"
    await page.reload()
    await page.locator("form.ask").evaluate(form)
    await expect(page.get_by_role("heading", name="This form cannot be used")).to_be_visible()
    await inspector.look("a form of another page")
    await press(page, page.get_by_role("link", name="Try this page again"))
    await expect(page.get_by_label("Mobile phone number")).to_be_visible()
    await page.goto(left["redirectUrl"][:-2])
    await inspector.look("a link that is not whole")
    await page.context.clear_cookies()
    await page.goto(order["redirectUrl"])
    await inspector.look("finished, in another browser")
    await page.goto(f"{order['redirectUrl'].partition('?')[0]}/{order['orderId']}")
    await inspector.look("another browser")
    # The page of a decline goes to the merchant after three seconds, so that people can read the reasons. They also get
    # the reasons by letter.
    expected = [f"declined, {screen.name}: meta-refresh:" for screen in SCREENS]
    assert [each for each in inspector.found if not each.startswith(tuple(expected))] == []


async def test_every_page_of_the_shop_is_accessible_and_fits_the_screen(
    open_tab: OpenTab, shop: Shop
) -> None:
    page = await open_tab()
    inspector = Inspector(page)
    await page.goto(f"{shop.url}/cart")
    await inspector.look("empty cart")
    await page.goto(shop.url)
    await inspector.look("products")
    await press(page, page.get_by_role("button", name="Hand Grinder"))
    await inspector.look("cart")
    await to_checkout(page, shop)
    await press(page, page.locator("form.leave button"))
    await page.wait_for_url(f"{shop.url}/cancel?*")
    await inspector.look("abandoned")
    await to_checkout(page, shop)
    await to_card(page)
    await card(page)
    await press_pay(page)
    await page.wait_for_url(f"{shop.url}/confirm?*")
    await inspector.look("approved")
    await page.goto(f"{shop.url}/orders")
    await inspector.look("orders")
    await press(page, page.locator(".orders a", has_text="Approved").first)
    await inspector.look("order")
    await press(page, page.get_by_role("button", name="What would happen? (capture)"))
    await inspector.look("order, looking ahead")
    await page.get_by_label("Amount in dollars to void").fill("9999")
    await press(page, page.get_by_role("button", name="Void", exact=True))
    await inspector.look("order, refused")
    await page.goto(f"{shop.url}/nowhere")
    await inspector.look("not found")
    assert inspector.found == []


async def _before_the_details(open_tab: OpenTab, shop: Shop) -> Page:
    """Open a checkout, and go to the form for the consumer's details."""
    page = await open_tab()
    await page.goto((await shop.merchant.create())["redirectUrl"])
    await fill(page, phone="2125550142")
    await fill(page, code="123456")
    return page


async def test_the_focus_moves_to_the_summary_of_errors_whose_links_lead_to_the_fields(
    open_tab: OpenTab, shop: Shop
) -> None:
    page = await _before_the_details(open_tab, shop)
    await fill(page, given_names="", email="nowhere")
    await expect(page.get_by_role("group", name="Please check")).to_be_focused()
    await page.keyboard.press("Tab")
    await page.keyboard.press("Enter")
    await page.keyboard.type("Jordan")
    await expect(page.get_by_label("First name")).to_have_value("Jordan")


async def test_a_single_error_moves_the_focus_to_its_field_which_shows_the_error(
    open_tab: OpenTab, shop: Shop
) -> None:
    page = await open_tab()
    await page.goto((await shop.merchant.create())["redirectUrl"])
    await fill(page, phone="12")
    phone = page.get_by_label("Mobile phone number")
    await expect(phone).to_be_focused()
    await expect(phone).to_have_accessible_description(
        "Error: Enter a US mobile number of ten digits, area code first. "
        "A US number. We text it a one-time code to confirm that it is yours."
    )


async def _colours(page: Page) -> list[list[int]]:
    script = """() => [getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color]
        .map(text => text.match(/\\d+/g).slice(0, 3).map(Number))"""
    return list(await page.evaluate(script))


@pytest.mark.parametrize("place", ["checkout", "shop"])
async def test_with_the_dark_color_scheme_the_text_is_light_on_a_dark_background(
    open_tab: OpenTab, shop: Shop, place: str
) -> None:
    url = shop.url if place == "shop" else (await shop.merchant.create())["redirectUrl"]
    for scheme, ground_is_darker in (("light", False), ("dark", True)):
        page = await open_tab(color_scheme=scheme)
        await page.goto(url)
        ground, words = await _colours(page)
        assert (sum(ground) < sum(words)) is ground_is_darker


async def test_only_a_field_with_an_error_is_red_not_one_that_has_the_focus(
    open_tab: OpenTab, shop: Shop
) -> None:
    page = await open_tab()
    await page.goto((await shop.merchant.create())["redirectUrl"])
    border = "element => [getComputedStyle(element).borderColor, getComputedStyle(element).outlineColor]"
    await page.locator("#phone").focus()
    focused = await page.locator("#phone").evaluate(border)
    assert (
        focused[0]
        == focused[1]
        == await page.locator("button.primary").evaluate(
            "element => getComputedStyle(element).backgroundColor"
        )
    )
    await fill(page, phone="12")
    await expect(page.locator("#phone-error")).to_be_visible()
    red = await page.locator("#phone-error").evaluate("element => getComputedStyle(element).color")
    assert (await page.locator("#phone").evaluate(border))[0] == red


async def test_a_screen_reader_is_told_that_a_field_is_wrong_only_after_an_error(
    open_tab: OpenTab, shop: Shop
) -> None:
    page = await _before_the_details(open_tab, shop)
    await expect(page.locator("#state")).to_be_visible()
    assert await _told_as_wrong(page) == []
    await fill(page, given_names="", email="nowhere")
    await expect(page.locator(".summary")).to_be_visible()
    assert {"First name", "Email"} <= set(await _told_as_wrong(page))


async def _told_as_wrong(page: Page) -> list[str]:
    """Return the names of the fields that the accessibility tree calls invalid."""
    session = await page.context.new_cdp_session(page)
    nodes = (await session.send("Accessibility.getFullAXTree"))["nodes"]
    return [
        node["name"]["value"]
        for node in nodes
        for each in node.get("properties", ())
        if each["name"] == "invalid" and each["value"]["value"] == "true"
    ]


async def test_with_the_setting_for_reduced_motion_there_is_no_motion(open_tab: OpenTab, shop: Shop) -> None:
    url = (await shop.merchant.create())["redirectUrl"]
    script = """() => [...document.querySelectorAll("*")].filter(e => ["", "::before", "::after"].some(part =>
        getComputedStyle(e, part).transitionDuration.split(", ").some(time => time !== "0s"))).length"""
    moving = []
    for motion in ("no-preference", "reduce"):
        page = await open_tab(reduced_motion=motion)
        await page.goto(url)
        moving.append(await page.evaluate(script))
    assert moving[0] > 0
    assert moving[1] == 0


async def test_the_first_page_has_less_than_60_kilobytes_in_total(open_tab: OpenTab, shop: Shop) -> None:
    page = await open_tab()
    weights: list[int] = []

    async def weigh(answer: Any) -> None:
        if answer.status == 200:
            weights.append(len(await answer.body()))

    page.on("response", weigh)
    await page.goto((await shop.merchant.create())["redirectUrl"], wait_until="networkidle")
    assert len(weights) >= 3
    assert sum(weights) < 60_000
