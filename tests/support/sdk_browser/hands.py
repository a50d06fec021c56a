"""The actions of a person in the SDK's window and modal, and the callbacks of the merchant's page."""

from __future__ import annotations

import asyncio
import re
from contextlib import AsyncExitStack
from typing import Any
from uuid import UUID

from playwright.async_api import Browser, BrowserContext, Frame, FrameLocator, Locator, Page, expect

from support.browser.chromium import PATIENCE_MS
from support.makers import Merchant, Running

CARD_THAT_PAYS = "4242424242424242"
CARD_DECLINED = "4000000000000002"
DETAILS = {
    "given_names": "Jordan", "surname": "Rivera", "email": "jordan@mail.example", "address_line1": "1480 Mission Street",
    "city": "San Francisco", "state": "CA", "postcode": "94103",
}  # fmt: skip
Place = Page | FrameLocator


class Tabs:
    """The browser profiles of one test, and the errors in their consoles."""

    def __init__(self, browser: Browser, stack: AsyncExitStack) -> None:
        self._browser = browser
        self._stack = stack
        self._expected: list[str] = []
        self._heard: list[str] = []

    @property
    def complaints(self) -> list[str]:
        return [text for text in self._heard if not any(re.search(known, text) for known in self._expected)]

    @property
    def known(self) -> int:
        """Return how many of the console's errors were expected."""
        return len(self._heard) - len(self.complaints)

    def expect(self, pattern: str) -> None:
        """Expect this error in the console, because the test causes it on purpose."""
        self._expected.append(pattern)

    async def context(self, **options: Any) -> BrowserContext:
        context = await self._browser.new_context(**{"viewport": {"width": 1280, "height": 800}, **options})
        self._stack.push_async_callback(context.close)
        context.set_default_timeout(PATIENCE_MS)
        context.on(
            "console",
            lambda message: (
                self._heard.append(f"{message.type}: {message.text}")
                if message.type in {"error", "warning"}
                else None
            ),
        )
        context.on("weberror", lambda error: self._heard.append(f"thrown: {error.error}"))
        return context

    async def open(self, **options: Any) -> Page:
        return await (await self.context(**options)).new_page()


async def fill(place: Place, **fields: str) -> None:
    """Enter what the page asks for, and press its button."""
    for name, value in fields.items():
        found = place.locator(f"#{name}")
        await (found.select_option(value) if name == "state" else found.fill(value))
    await place.locator("form.ask button.primary").click()


async def to_card(place: Place, **details: str) -> None:
    """Go from the first page of the checkout to the last."""
    await fill(place, phone="(212) 555-0142")
    await fill(place, code="123456")
    await fill(place, **{**DETAILS, **details})
    await place.get_by_label("Card number").wait_for()


async def press_pay(place: Place, number: str = CARD_THAT_PAYS) -> None:
    """Enter a card, accept the agreement, and press the button that shows the amount."""
    await place.get_by_label("Card number").fill(number)
    await place.get_by_label("Expiration date").fill("12/39")
    await place.get_by_label("Security code").fill("737")
    await place.get_by_label("I have read and accept the payment agreement").check()
    await place.get_by_role("button", name="Pay $").click()


async def buy(place: Place, **details: str) -> None:
    """Complete the whole checkout."""
    await to_card(place, **details)
    await press_pay(place)


async def popup_of(page: Page, trigger: Locator | None = None) -> Page:
    """Click, and return the window that opens, once it shows the checkout."""
    async with page.expect_popup() as opening:
        await (trigger or page.locator("#buy")).click()
    popup = await opening.value
    phone, another = (
        popup.get_by_label("Mobile phone number"),
        popup.get_by_role("link", name="Use another card"),
    )
    await phone.or_(another).first.wait_for()
    if await another.count():
        # This browser bought before, so all the steps are behind a link.
        await another.click()
    await phone.wait_for()
    return popup


async def modal_of(page: Page, *, click: bool = True) -> FrameLocator:
    """Return the modal's frame, once it shows the checkout."""
    if click:
        await page.locator("#buy").click()
    frame = page.frame_locator("dialog iframe")
    await frame.get_by_label("Mobile phone number").wait_for()
    return frame


def framed(page: Page) -> Frame:
    """Return the checkout's frame."""
    return next(frame for frame in page.frames if "/checkout/" in frame.url)


async def heard(page: Page, name: str) -> Any:
    """Return the argument of a callback, as soon as it was called."""
    found = await page.wait_for_function("name => window.heard.find((each) => each.name === name)", arg=name)
    return (await found.json_value())["value"]


async def all_heard(page: Page) -> list[str]:
    """Return the names of all callbacks that were called, in order."""
    return list(await page.evaluate("heard.map((each) => each.name)"))


def press_escape(page: Page) -> None:
    """Press Escape without waiting for Chromium, which sometimes never confirms a key that closes the frame with the focus."""
    pressing = asyncio.ensure_future(page.keyboard.press("Escape"))
    # The end of the test closes the page, which is an error for a press that is still waiting.
    pressing.add_done_callback(lambda done: done.cancelled() or done.exception())


async def modal_gone(page: Page) -> None:
    await expect(page.locator("dialog")).to_have_count(0)


async def orders(service: Running, merchant: Merchant) -> dict[str, str]:
    """Return every order of a merchant, with its state."""
    sql = "SELECT order_id, status FROM orders WHERE merchant_id = $1"
    rows = await service.context.pool.fetch(sql, merchant.merchant_id)
    return {str(row["order_id"]): row["status"] for row in rows}


async def the_order(service: Running, merchant: Merchant) -> str:
    """Return the state of the merchant's only order."""
    (status,) = (await orders(service, merchant)).values()
    return status


async def charges(service: Running, order_id: str) -> list[int]:
    """Return what the simulated card network charged for an order."""
    sql = """SELECT s.amount FROM card_simulator.charges s JOIN charges c ON c.charge_id = s.key
        WHERE c.order_id = $1 AND s.approved"""
    return [row["amount"] for row in await service.context.pool.fetch(sql, UUID(order_id))]
