"""The browser's Back button goes back one step of the checkout, and nothing breaks."""

from __future__ import annotations

import re
from typing import Any

import pytest
from playwright.async_api import Page, expect

from support.browser.shopper import DETAILS, card, fill, paid, press_pay, to_card, to_checkout
from support.browser.tabs import OpenTab, Shop
from support.makers import Running

pytestmark = pytest.mark.browser
SCRIPTS = pytest.mark.parametrize(
    "how", [{}, {"java_script_enabled": False}], ids=["with script", "without script"]
)
STEPS = ("Review and pay", "Your details", "Your number is confirmed", "Pay in four")


async def at(page: Page, heading: str) -> None:
    await expect(page.get_by_role("heading", name=heading, level=1)).to_be_visible()


@SCRIPTS
async def test_each_press_of_back_shows_the_previous_step_with_the_entered_data_and_forward_shows_the_next(
    open_tab: OpenTab, shop: Shop, service: Running, how: dict[str, Any]
) -> None:
    page = await open_tab(**how)
    await to_checkout(page, shop)
    await to_card(page)
    for heading in STEPS[1:]:
        await page.go_back()
        await at(page, heading)
    await expect(page.get_by_label("Mobile phone number")).to_have_value(re.compile(r"212\D*555\D*0142"))
    for heading in reversed(STEPS[:-1]):
        await page.go_forward()
        await at(page, heading)
    await page.go_back()
    await expect(page.get_by_label("Last name")).to_have_value(DETAILS["surname"])
    await fill(page, city="Oakland")
    await at(page, "Review and pay")
    await expect(page.locator("main")).to_contain_text("Oakland")
    await card(page)
    await press_pay(page)
    await page.wait_for_url(f"{shop.url}/confirm?*")
    assert await paid(service, page.url.partition("orderId=")[2]) == [2249]


@SCRIPTS
async def test_the_earlier_steps_can_be_repeated_without_a_second_code(
    open_tab: OpenTab, shop: Shop, how: dict[str, Any]
) -> None:
    page = await open_tab(**how)
    await to_checkout(page, shop)
    await fill(page, phone="2125550142")
    await fill(page, code="123456")
    await at(page, "Your details")
    await page.go_back()
    await page.go_back()
    await at(page, "Pay in four")
    await fill(page)
    await at(page, "Your details")


async def test_back_from_the_code_page_shows_the_phone_page_and_another_number_may_be_entered(
    open_tab: OpenTab, shop: Shop
) -> None:
    page = await open_tab()
    await to_checkout(page, shop)
    await fill(page, phone="2125550142")
    await at(page, "Enter your code")
    await page.go_back()
    await at(page, "Pay in four")
    await fill(page, phone="2125550143")
    await expect(page.locator("main")).to_contain_text("the number ending 43")
    await fill(page, code="000000")
    await expect(page.get_by_text("This code is wrong")).to_be_visible()
    await page.go_back()
    await at(page, "Enter your code")


async def test_back_after_a_corrected_error_shows_the_earlier_step_instead_of_a_question_about_the_form(
    open_tab: OpenTab, shop: Shop
) -> None:
    page = await open_tab()
    await to_checkout(page, shop)
    await fill(page, phone="123")
    await expect(page.locator("#phone-error")).to_be_visible()
    await fill(page, phone="2125550142")
    await fill(page, code="000000")
    await expect(page.get_by_text("This code is wrong")).to_be_visible()
    await fill(page, code="123456")
    await fill(page, given_names="")
    await expect(page.locator("#given_names-error")).to_be_visible()
    await fill(page, **DETAILS)
    await at(page, "Review and pay")
    seen = []
    while "step=phone" not in page.url:
        await page.go_back()
        seen.append(await page.get_by_role("heading", level=1).text_content())
    assert {str(heading).strip() for heading in seen} == set(STEPS[1:])


async def test_a_reload_of_a_refused_form_asks_nothing(
    open_tab: OpenTab, shop: Shop, service: Running
) -> None:
    page = await open_tab()
    await page.goto(f"{service.settings.public_url}/account")
    await fill(page, phone="2125550142")
    await fill(page, code="000000")
    await expect(page.get_by_text("This code is wrong")).to_be_visible()
    await page.reload()
    await at(page, "Enter your code")
    await expect(page.get_by_text("This code is wrong")).not_to_be_visible()
