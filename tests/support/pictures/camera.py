"""Code that all scenes of the screenshots share: the camera, and the actions of a shopper."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from playwright.async_api import Error, Page


@dataclass
class Camera:
    """One kind of screenshot: a width and a color scheme."""

    page: Page
    folder: Path
    name: str

    async def visit(self, url: str) -> None:
        """Open a page. If the previous page sends the browser to the shop at the same moment, open the page again."""
        try:
            await self.page.goto(url)
        except Error as error:
            if "interrupted by another navigation" not in error.message:
                raise
            await self.page.wait_for_load_state()
            await self.page.goto(url)

    async def take(self, state: str) -> None:
        await self.page.screenshot(path=self.folder / f"{state}-{self.name}.png", full_page=True)


async def fill(page: Page, **fields: str) -> None:
    """Type into fields by their ids, and press the primary button."""
    for name, value in fields.items():
        field = page.locator(f"#{name}")
        await (field.select_option(value) if name == "state" else field.fill(value))
    await page.locator("form.ask button.primary").click()


DETAILS = {
    "given_names": "Jordan", "surname": "Rivera", "email": "jordan.rivera@mail.example", "address_line1": "1480 Mission Street",
    "address_line2": "Apt 5", "city": "San Francisco", "state": "CA", "postcode": "94103",
}  # fmt: skip


async def pay(page: Page, card: str) -> None:
    """Enter a card, accept the agreement, and press the button."""
    await page.get_by_label("I have read and accept").check()
    await fill(page, card_number=card, card_expiry="12 / 39", card_cvc="123")


async def first_step(page: Page) -> None:
    """Go to the step that asks for a phone number, also in a browser that bought before."""
    phone, another = page.locator("[name=phone]"), page.get_by_role("link", name="Use another card")
    await phone.or_(another).first.wait_for()
    if await another.count():
        await another.click()
    await phone.wait_for()


async def through(page: Page, details: dict[str, str]) -> None:
    await first_step(page)
    await fill(page, phone="212 555 0143")
    await fill(page, code="123456")
    await fill(page, **details)
