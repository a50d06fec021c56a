"""The actions of a person in the shop and in the checkout, with a mouse and a keyboard."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from playwright.async_api import Locator, Page

from support.browser.tabs import Shop
from support.makers import Running

CARD_THAT_PAYS = "4242424242424242"
CARD_DECLINED = "4000000000000002"
DETAILS = {
    "given_names": "Jordan", "surname": "Rivera", "email": "jordan@mail.example", "address_line1": "1480 Mission Street",
    "city": "San Francisco", "state": "CA", "postcode": "94103",
}  # fmt: skip


async def press(page: Page, button: Locator) -> None:
    """Click something that leads to another page, and wait for that page.

    A click alone returns before the page is loaded.
    """
    async with page.expect_navigation():
        await button.click()


async def to_checkout(page: Page, shop: Shop, product: str = "Gooseneck Kettle") -> None:
    """Go from the list of products through the cart to the first page of the checkout."""
    await page.goto(shop.url)
    await press(page, page.get_by_role("button", name=product))
    await press(page, page.get_by_role("button", name="Continue to pay in four"))
    await first_step(page)


async def first_step(page: Page) -> None:
    """Go to the step that asks for a phone number, also in a browser that bought before."""
    phone, another = (
        page.get_by_label("Mobile phone number"),
        page.get_by_role("link", name="Use another card"),
    )
    await phone.or_(another).first.wait_for()
    if await another.count():
        await press(page, another)
    await phone.wait_for()


async def fill(page: Page, **fields: str) -> None:
    """Enter what the page asks for, and press its button."""
    for name, value in fields.items():
        field = page.locator(f"#{name}")  # the fields of a card have no name while a script runs
        await (field.select_option(value) if name == "state" else field.fill(value))
    await press(page, page.locator("form.ask button.primary"))


async def to_card(page: Page, **details: str) -> None:
    """Go from the first page of the checkout to the last."""
    await fill(page, phone="(212) 555-0142")
    await fill(page, code="123456")
    await fill(page, **{**DETAILS, **details})
    await page.get_by_label("Card number").wait_for()


async def card(page: Page, number: str = CARD_THAT_PAYS) -> None:
    """Fill in everything on the last page, without pressing the button."""
    await page.get_by_label("Card number").fill(number)
    await page.get_by_label("Expiration date").fill("12/39")
    await page.get_by_label("Security code").fill("737")
    await page.get_by_label("I have read and accept the payment agreement").check()


async def press_pay(page: Page) -> None:
    """Return the button that shows the amount."""
    await press(page, page.get_by_role("button", name="Pay $"))


async def last_order(page: Page, shop: Shop) -> dict[str, Any]:
    """Open the order of this tab in the back office, by its id at the provider, and return its record."""
    identifier = await page.locator("p.small", has_text="Order at the provider").locator("code").inner_text()
    return await shop.merchant.read({"orderId": identifier})


async def paid(service: Running, order_id: str) -> list[int]:
    """Return what the simulated card network charged for an order."""
    sql = """SELECT s.amount FROM card_simulator.charges s JOIN charges c ON c.charge_id = s.key
        WHERE c.order_id = $1 AND s.approved"""
    return [row["amount"] for row in await service.context.pool.fetch(sql, UUID(order_id))]
