"""One wrong digit does not empty the card form."""

from __future__ import annotations

import pytest
from playwright.async_api import Page, expect

from cuota.core.checkout.card import BadCard, read_card
from support.browser.by_http import at_card
from support.browser.shopper import CARD_THAT_PAYS, press, press_pay
from support.browser.tabs import OpenTab, Shop
from support.makers import Running

pytestmark = pytest.mark.browser
MISTAKES = [
    ("card_number", "4242 4242 4242 4241"),
    ("card_number", ""),
    ("card_number", "9999 9999 9999 9995"),
    ("card_expiry", "13 / 39"),
    ("card_expiry", "01 / 20"),
    ("card_expiry", ""),
    ("card_cvc", "73"),
    ("card_cvc", "7373"),
    ("card_cvc", ""),
]


async def filled(page: Page, **given: str) -> None:
    card = {"card_number": CARD_THAT_PAYS, "card_expiry": "12/39", "card_cvc": "737", **given}
    for name, text in card.items():
        await page.locator(f"#{name}").fill(text)


@pytest.mark.parametrize(("field", "typed"), MISTAKES)
async def test_a_mistake_is_shown_beside_its_field_in_the_server_s_words_and_nothing_is_sent_or_lost(
    open_tab: OpenTab, shop: Shop, service: Running, field: str, typed: str
) -> None:
    page = await open_tab()
    await at_card(page, shop)
    await filled(page, **{field: typed})
    await page.get_by_label("I have read and accept").check()
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.method))
    before = [
        await page.locator(f"#{name}").input_value() for name in ("card_number", "card_expiry", "card_cvc")
    ]
    await page.get_by_role("button", name="Pay $").click()
    given = {"card_number": CARD_THAT_PAYS, "card_expiry": "12/39", "card_cvc": "737", field: typed}
    with pytest.raises(BadCard) as server:
        read_card(given["card_number"], given["card_expiry"], given["card_cvc"], service.clock.now().date())
    await expect(page.locator(f"#{field}-error")).to_contain_text(server.value.errors[field])
    await expect(page.locator(".error")).to_have_count(1)
    await expect(page.locator(f"#{field}")).to_be_focused()
    await expect(page.locator(f"#{field}")).to_have_attribute("aria-invalid", "true")
    described = await page.locator(f"#{field}").get_attribute("aria-describedby")
    assert (described or "").split()[0] == f"{field}-error"
    after = [
        await page.locator(f"#{name}").input_value() for name in ("card_number", "card_expiry", "card_cvc")
    ]
    assert (after, sent) == (before, [])
    assert await page.get_by_label("I have read and accept").is_checked()


async def test_after_the_digit_is_corrected_the_same_form_pays(open_tab: OpenTab, shop: Shop) -> None:
    page = await open_tab()
    await at_card(page, shop)
    await filled(page, card_number="4242424242424241")
    await page.get_by_role("button", name="Pay $").click()
    await expect(page.locator(".error")).to_have_count(2)  # the card number and the consent
    await page.get_by_label("Card number").fill(CARD_THAT_PAYS)
    await page.get_by_label("I have read and accept").check()
    await press_pay(page)
    await page.wait_for_url(f"{shop.url}/confirm?*")


async def test_a_card_with_four_security_digits_requires_four_digits(open_tab: OpenTab, shop: Shop) -> None:
    page = await open_tab()
    await at_card(page, shop)
    await filled(page, card_number="378282246310005", card_cvc="737")
    await page.get_by_label("I have read and accept").check()
    await page.get_by_role("button", name="Pay $").click()
    await expect(page.locator("#card_cvc-error")).to_contain_text("Enter the 4 digits of the security code.")
    await page.get_by_label("Security code").fill("7373")
    await press_pay(page)
    await page.wait_for_url(f"{shop.url}/confirm?*")


async def test_without_script_all_fields_except_the_number_and_the_code_keep_their_values(
    open_tab: OpenTab, shop: Shop
) -> None:
    page = await open_tab(java_script_enabled=False)
    await at_card(page, shop)
    await filled(page, card_number="4242424242424241")
    await page.get_by_label("I have read and accept").check()
    await press(page, page.get_by_role("button", name="Pay $"))
    await expect(page.locator("#card_number-error")).to_be_visible()
    held = [
        await page.locator(f"#{name}").input_value() for name in ("card_number", "card_expiry", "card_cvc")
    ]
    assert held == ["", "12/39", ""]
    assert await page.get_by_label("I have read and accept").is_checked()
    assert "42424242" not in await page.content()
