"""Takes pictures of the SDK's button, popup, modal and inspector, 375 and 1280 pixels wide, light and dark.

python tests/pictures/sdk.py FOLDER
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
from playwright.async_api import BrowserContext, Page, async_playwright

sys.path.append(str(Path(__file__).resolve().parents[1]))

from support.browser.chromium import FLAGS
from support.pictures.camera import Camera
from support.pictures.sandbox import Sandbox, sandbox
from support.sdk_browser.hands import CARD_DECLINED, DETAILS, buy, fill, modal_of, popup_of, press_pay
from support.sdk_browser.merchant_site import Site, opened_site

PHONE = {"width": 375, "height": 812}
WIDE = {"width": 1280, "height": 860}
POPUP = {"width": 460, "height": 780}
LOOKS = [(size, scheme) for size in (PHONE, WIDE) for scheme in ("light", "dark")]
HOLD = "window.hold = new Promise(() => undefined); undefined"


@dataclass
class DemoMerchant:
    """The sandbox's merchant, with the data that the site needs."""

    running: Sandbox
    merchant_id: str
    signing_secret: str
    http: httpx.AsyncClient

    @property
    def service(self) -> DemoMerchant:
        return self

    def client(self, **more: Any) -> httpx.AsyncClient:
        return httpx.AsyncClient(base_url=self.running.url, trust_env=False, **more)


@dataclass
class Scene:
    """One size and color scheme, and its browser profile."""

    context: BrowserContext
    site: Site
    merchant: Any
    folder: Path
    name: str
    phone: bool
    count: int = 0

    async def shop(self, variant: str = "button", **fields: object) -> Page:
        """Open the merchant's page. Each call has a new order."""
        self.count += 1
        page = await self.context.new_page()
        await page.goto(
            self.site.page(self.merchant, variant, merchantReference=f"{self.name}-{self.count}", **fields)
        )
        await page.wait_for_function("window.pay?.version")
        return page

    async def take(self, page: Page, state: str, *, whole: bool = False) -> None:
        if whole:
            await Camera(page, self.folder, self.name).take(f"sdk-{state}")
        else:
            await page.screenshot(path=self.folder / f"sdk-{state}-{self.name}.png")

    async def popup(self, page: Page) -> Page:
        opened = await popup_of(page)
        await opened.set_viewport_size(PHONE if self.phone else POPUP)  # type: ignore[arg-type]
        return opened


async def button(scene: Scene) -> None:
    """Take pictures of the button in its states."""
    page = await scene.shop()
    await page.evaluate("""() => {
        const more = ["disabled", "busy"].map((state) => Object.assign(document.createElement("pay-button"), {[state]: true}));
        const other = Object.assign(document.createElement("pay-button"), {textContent: "Pay $25.00 today"});
        document.querySelector("main").append(...[...more, other].flatMap((it) => [it, document.createElement("p")]));
    }""")
    await page.keyboard.press("Tab")
    await scene.take(page, "1-button")
    await page.close()


async def blank(scene: Scene) -> None:
    """Take pictures of the service's blank window."""
    page = await scene.context.new_page()
    await page.set_viewport_size(PHONE if scene.phone else POPUP)  # type: ignore[arg-type]
    for state in ("blank", "slow", "failed"):
        await page.goto("about:blank")
        await page.goto(f"{scene.merchant.running.url}/sdk/v1/window#{state}")
        await scene.take(page, f"2-popup-{state}")
    await page.close()


async def popup(scene: Scene) -> None:
    """Take pictures of every step and every last page in the popup."""
    page = await scene.shop(checkoutFlow="express")
    await page.evaluate(HOLD)
    window = await scene.popup(page)
    await scene.take(window, "3-popup-1-phone", whole=True)
    await fill(window, phone="212 555 0143")
    await scene.take(window, "3-popup-2-code", whole=True)
    await fill(window, code="123456")
    await scene.take(window, "3-popup-3-details", whole=True)
    await fill(window, **DETAILS)
    await scene.take(window, "3-popup-4-shipping", whole=True)
    await window.locator("form.ask button.primary").click()
    await window.get_by_label("Card number").wait_for()
    await scene.take(window, "3-popup-5-pay", whole=True)
    await press_pay(window)
    await window.get_by_role("heading", name="Your order is confirmed").wait_for()
    await scene.take(window, "3-popup-6-approved", whole=True)
    await window.close()
    await page.close()
    await ends(scene)


async def ends(scene: Scene) -> None:
    """Take pictures of the popup's last pages without a payment."""
    for state in ("declined", "expired"):
        page = await scene.shop()
        await page.evaluate(HOLD)
        window = await scene.popup(page)
        if state == "declined":
            await buy(window, surname="Declinetest")
        else:
            await scene.merchant.running.sql(
                "UPDATE orders SET expires_at = now(), due_at = 'infinity' WHERE order_id = $1::text::uuid",
                window.url.split("/")[-1].partition("?")[0],
            )
            await fill(window, phone="212 555 0143")
        await window.wait_for_load_state()
        await page.wait_for_function("heard.length")
        await scene.take(window, f"4-popup-{state}", whole=True)
        await window.close()
        await page.close()


async def modal(scene: Scene) -> None:
    """Take pictures of the modal over the merchant's page."""
    page = await scene.shop(display="iframe")
    await page.evaluate(HOLD)
    arrived, free = asyncio.Event(), asyncio.Event()

    async def wait(route: Any) -> None:
        arrived.set()
        await free.wait()
        await route.continue_()

    await page.route("**/sdk/v1/checkouts", wait)
    await page.locator("#buy").click()
    await arrived.wait()
    await scene.take(page, "5-modal-0-opening")
    await page.get_by_text("This takes longer than usual").wait_for()
    await scene.take(page, "5-modal-0-slow")
    free.set()
    frame = await modal_of(page, click=False)
    await scene.take(page, "5-modal-1-phone")
    await fill(frame, phone="212 555 0143")
    await frame.get_by_label("One-time code").wait_for()
    await scene.take(page, "5-modal-2-code")
    await fill(frame, code="123456")
    await fill(frame, **DETAILS)
    await frame.get_by_label("Card number").wait_for()
    await scene.take(page, "5-modal-4-pay")
    await press_pay(frame, CARD_DECLINED)
    await frame.get_by_role("alert").wait_for()
    await scene.take(page, "5-modal-4-pay-declined")
    await press_pay(frame)
    await frame.get_by_role("heading", name="Your order is confirmed").wait_for()
    await scene.take(page, "5-modal-5-approved")
    await page.close()
    page = await scene.shop(display="iframe")
    await page.route("**/sdk/v1/checkouts", lambda route: route.abort())
    await page.locator("#buy").click()
    await page.get_by_text("Your payment could not be opened").wait_for()
    await scene.take(page, "5-modal-6-failed")
    await page.close()


async def inspector(scene: Scene) -> None:
    """Take pictures of the inspector after a purchase with a virtual card."""
    page = await scene.shop("inspect", integrationType="virtual_card")
    await page.get_by_text("Pay inspector").click()
    await buy(await scene.popup(page))
    await page.wait_for_function("heard.length > 2")
    await page.locator("[data-pay-inspector] ol").evaluate("it => (it.scrollTop = 0)")
    await scene.take(page, "6-inspector")
    await page.locator("[data-pay-inspector] ol").evaluate("it => (it.scrollTop = it.scrollHeight)")
    await scene.take(page, "6-inspector-end")
    await page.close()


async def take_all(folder: Path, running: Sandbox) -> None:
    """Take all pictures."""
    kept = json.loads((running.data / "demo-merchant.json").read_text())
    path = os.environ.get("CHROMIUM") or shutil.which("chromium")
    async with (
        opened_site(running.url) as site,
        httpx.AsyncClient(headers={"Authorization": f"Bearer {running.token}"}) as http,
        async_playwright() as playwright,
    ):
        merchant = DemoMerchant(running, kept["merchantId"], kept["signingSecret"], http)
        browser = await playwright.chromium.launch(executable_path=path, args=FLAGS.split())
        for size, scheme in LOOKS:
            for act in (button, blank, popup, modal, inspector):
                context = await browser.new_context(viewport=size, color_scheme=scheme)  # type: ignore[arg-type]
                name = f"{size['width']}-{scheme}"
                await act(Scene(context, site, merchant, folder, name, size is PHONE))
                await context.close()
        await browser.close()


def main() -> int:
    """Run the program."""
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    with sandbox() as running:
        asyncio.run(take_all(folder, running))
    print(f"{len(list(folder.glob('sdk-*.png')))} pictures of the SDK in {folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
